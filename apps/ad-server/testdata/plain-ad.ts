/** A valid ad as in a catalogue file, without targeting, flight and cap. Each test adds the fields that it is about. */
export const PLAIN_AD = {
  id: "velmora-drift",
  product_name: "Velmora Drift",
  advertiser: "velmora",
  category: "running-shoes",
  description: "A trainer.",
  keywords: ["running shoes"],
  landing_url: "https://velmora.example/",
  bid_cpm_micros: 1,
  budget_micros: 1,
};
