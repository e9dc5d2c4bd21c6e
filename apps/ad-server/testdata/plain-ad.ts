/** A sound ad as a catalogue file has it, without targeting, flight or cap: what a test is about, it adds. */
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
