/** `npm run fit:ads`: see ad-model/README.md. */
import "../ad-model/fit-ads.ts";
