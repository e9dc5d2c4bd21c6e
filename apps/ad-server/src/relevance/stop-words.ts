/** Words that say nothing of what a prompt is about, by language; each is compared as the tokenizer folds it. */
export const STOP_WORDS = {
  en: `a about above after again all also am an and any are aren as at be because been before being below
    between both but by can cannot could did do does doing don down during each even ever few for from
    further get gets getting give go going good got had has have having he her here hers him his how i if
    im in into is isn it its ive just know like lot make many me more most much my need new no nor not now
    of off ok on once one only or other our out over own per please quite really s same say she should so
    some something such t than that the their them then there these they thing things think this those
    through to too two under until up us use using ve very want was way we well were what when where which
    while who whom why will with without work would you your`,
  de: `aber alle als also am an auch auf aus bei bin bis da damit dann das dass dein dem den der des die
    dies diese doch du ein eine einem einen einer er es für hab habe haben hat ich ihr im in ist ja kann
    kein keine man mein meine mich mir mit nach nicht noch nur oder schon sehr sich sie sind so soll sollte
    über um und uns unser unsere von vor war was wenn wer wie wir wird wo zu zum zur`,
  fr: `ai au aux avec c ce ces cette comment d dans de des du elle en est et eu fait il j je l la le les
    leur lui m ma mais me mes moi mon n ne nos notre nous on ont ou où par pas plus pour qu que quel quelle
    quels quelles qui s sa sans se ses si son sont sur t tout tu un une vous y`,
  es: `al algo como con cual cuál cuando de del dos el él ella en es esta está este esto ha hay la las le
    lo los más me mi mis muy no nos o para pero por porque qué que se si sí sin sobre son su sus te tengo
    tu un una uno y ya yo`,
  pt: `a ao as até com como da das de do dos e é ela ele em essa esse esta está este eu há isso já mais mas
    me meu minha muito na não nas no nos o os ou para pela pelo por pra qual quando que se sem ser seu só
    sua também tem tenho um uma você`,
} as const;
