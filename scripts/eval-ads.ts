/** `npm run eval:ads`: see ad-model/README.md. */
import "../ad-model/eval-ads.ts";
