// The visual language: colours by role as variables, which follow the page's theme.

/** role: ink and wash on light, ink and wash on dark. */
const PALETTE: Record<string, [string, string, string, string]> = {
  value: ["#246CCC", "#E1ECFB", "#80C0EF", "#12304A"],
  constant: ["#5A6472", "#E9ECF0", "#A3ADBA", "#2A3038"],
  residual: ["#A06109", "#FBEFD9", "#FDCF77", "#3B2E10"],
  cotangent: ["#6D195F", "#F6E2F1", "#F44891", "#45152C"],
  batch: ["#006446", "#DBF1E8", "#3FE0A6", "#0D3A2B"],
  mesh: ["#4B11A9", "#EBE4FA", "#987CF2", "#292050"],
  meshy: ["#00666E", "#D8F0F2", "#4FCFD8", "#0B3237"],
  meshz: ["#5A6200", "#EFF2D0", "#C9D552", "#2D310F"],
  miss: ["#8A2308", "#FAE4DD", "#EB8769", "#431F15"],
};
/** What tokens of Python look like, on light and on dark. */
const TOKENS: Record<string, [string, string]> = {
  word: ["#7B2FA8", "#CFA6F5"],
  text: ["#20682F", "#8FD19E"],
  number: ["#8F4A00", "#F0B27A"],
  comment: ["#5A6472", "#A3ADBA"],
  name: ["#14508F", "#9CC9F5"],
};
/** How light the ground of a source line's rows is: usual, and where it is lit. */
const GROUNDS: [string, string][] = [
  ["0.97 0.02", "0.9 0.07"],
  ["0.255 0.03", "0.34 0.07"],
];
const LIGHT = { base: "#FFFFFF", panel: "#F4F6F9", text: "#1B2027", line: "#7A8594" };
const DARK = { base: "#14171C", panel: "#1D222A", text: "#E6EAF0", line: "#6B7685" };

function variables(dark: boolean): string {
  const declared = Object.entries(dark ? DARK : LIGHT).map(([n, c]) => `--mj-${n}:${c}`);
  for (const [role, colours] of Object.entries(PALETTE)) {
    const [ink, wash] = dark ? [colours[2], colours[3]] : [colours[0], colours[1]];
    declared.push(`--mj-${role}:${ink}`, `--mj-${role}-wash:${wash}`);
  }
  for (const [kind, inks] of Object.entries(TOKENS)) declared.push(`--mj-t-${kind}:${inks[dark ? 1 : 0]}`);
  const [usual, lit] = GROUNDS[dark ? 1 : 0]!;
  declared.push(`--mj-ground:${usual}`, `--mj-ground-lit:${lit}`);
  return declared.join(";");
}

const roles = Object.keys(PALETTE)
  .map((role) => `span.mj-${role}{color:var(--mj-${role})}`)
  .concat(Object.keys(TOKENS).map((kind) => `span.mj-t-${kind}{color:var(--mj-t-${kind})}`))
  .join("");

/** Fonts of code and of text: signs, too, the last ones of `WORDS`. */
const CODE = "E";
const TEXT = "T";

/** Fonts that Linux does not have; a browser looks for each of them, in each size. */
const NAMED = /Linux/.test(navigator.platform) ? "" : "ui-monospace,SFMono-Regular,Menlo,Consolas,";

/** What stands for what in the rules below; each word's first letter is its sign. The build
 *  writes capital letters for words, so that the rules here can be read. */
const WORDS =
  "?.mj-live !#table.mj-!^tr.mj-!|background:!_white-space:!<display:!Sbox-shadow:!U&residual!V :is(td,th)!Wfont-weight:!Ymin-width:!Z-wash;!Xcolumn!$border-radius:!'td:first-child!Acolor:!Bwidth!Foverflow!Gborder!Hpadding!Itransparent!Jconstant!Kvalue!L-child!Mcursor:pointer!Nstroke!Pflex!Qoutline!Rheight!Dtext!Onone!Cline" +
  `!Evar(--jp-code-font-family,var(--vscode-editor-font-family,${NAMED}monospace))` +
  "!Tvar(--jp-ui-font-family,var(--vscode-font-family,system-ui,sans-serif))";

/** A page carries all of this, so it is short: `.x` stands for `.mj-x`, `&x` for
 *  `var(--mj-x)`, and `WORDS` says what other signs stand for: `?` begins most rules. What a
 *  step changes is said of rows and of marked cells: a rule about all cells of a lit row
 *  makes a browser look at each of them at each step. */
const WRITTEN = `
.live{container-type:inline-size;font:13px/20px ${TEXT};color:&text;overflow-wrap:anywhere;
|&base;padding:8px clamp(4px,10% - 28px,12px);$4px;outline-offset:2px;text-align:left}
?*{box-sizing:border-box}
.live:focus-visible,?:is(button,input,.pane,tr):focus-visible{outline:2px solid &value;outline-offset:2px}
?.pane:focus-visible{outline-offset:-2px}
.still{<flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline;margin:0 0 8px}
.still .head{flex:230px;margin:0}
.still .bar{margin:0;flex:none}
.still .gap{<none}
.still .where{flex:none}
.head{font:600 15px/22px ${TEXT};margin:0 0 8px}
.bar{<flex;flex-wrap:wrap;gap:4px;align-items:center;margin:0 0 8px}
.bar :is(button,select,[type=search]){font:inherit;color:&text;
|&panel;border:1px solid transparent;$4px;min-width:24px;
height:24px;padding:0 4px;cursor:pointer}
.bar button:hover{border-color:&line}
.bar :is([aria-pressed=true],.filtering){|&value-wash;border-color:&value}
.bar button:disabled{opacity:.4;cursor:default}
.bar input[type=range]{flex:60px;min-width:60px;max-width:220px;height:24px;margin:0 4px;
accent-color:&value;|transparent}
.bar input[type=search]{width:150px;cursor:text}
.where{font-variant-numeric:tabular-nums;flex:99 8em;max-width:max-content;_nowrap;overflow:hidden;text-overflow:ellipsis}
.gap{flex:1}
.bar [title=keys]{margin-left:-28px}
.bar [title="show as text"]{margin-right:28px}
.panes{<flex;flex-wrap:wrap;gap:12px;align-items:flex-start}
.column{min-width:min(&least,100%);flex:&least;<flex;flex-direction:column;gap:12px;position:relative}
.column.wide{flex:100%}
.column:where(.shared){flex-basis:0;min-width:120px}
.handle{position:absolute;inset:0 auto 0 -12px;width:12px;cursor:col-resize;touch-action:none}
.handle:is(:hover,:focus-visible){|&line;opacity:.4}
.pane{min-width:0;flex:none;|&base;$4px;max-height:max(480px,100vh - 200px);
overflow:auto;position:relative}
.pane:not(:only-child){max-height:max(300px,66vh)}
.title{font-weight:600;color:&constant;padding:0 8px;position:sticky;top:0;left:0;z-index:1;
|&base}
?#table{border-collapse:collapse;border:0;margin:0;font:13px/20px ${CODE};width:100%;
table-layout:auto;|&base;color:&text}
?#table :is(td,th){border:0;padding:0 12px 0 8px;text-align:left;line-height:20px;
vertical-align:top;_pre;|transparent;font-weight:400;max-width:none;width:1px}
?#table :is(td,th):last-child{width:auto}
?#table thead{border:0}
?#table th{color:&constant;font-family:${TEXT};overflow:hidden;text-overflow:ellipsis}
?#table tr:nth-child(n){
|transparent;border:0;padding:0}
?#code tr:nth-child(n){|&base}
?^r{cursor:default}
?^r.go{cursor:pointer}
?.listing td.rail{color:&constant}
?#code '{color:&constant;text-align:right;padding-right:8px;user-select:none;
position:sticky;left:0;|inherit}
?#prose td{_pre-wrap;font-family:${TEXT};padding-bottom:2px}
?#prose '{_nowrap;color:&constant}
?#sides :is(td,th):nth-child(n+2){width:50%}
?#sides th:nth-child(n+2){max-width:0}
?:is(##plain,#listing) td.rail:last-child{min-width:calc(&last + 20px)}
?#plain ':not(:only-child){min-width:min(&first,52ch,max(24cqw,26ch,100cqw - &rest))}
?#plain .long{min-width:calc(44cqw - 18ch)}
?#listing ',?#plain ',?#code td+td,?#sides td+td,?td.rail:last-child,?#plain .long{_pre-wrap}
?#listing ':not(:only-child){width:&first}

?#table td.hang{--mj-i:min(&hang*1ch,40cqw);padding-left:calc(var(--mj-at,8px) + &i);
text-indent:calc(-1*&i)}
?.changed{|&residual-wash;$3px;box-shadow:0 0 0 1px &residual}
?#table td.sized{text-align:right}
?^later :not(mark){color:&constant}
?^later svg{opacity:.6}
?#table ^line:nth-child(n){|oklch(&ground &hue)}
?#code ^line>'{|oklch(&ground-lit &hue);color:&text}
?^lit.line .value{color:color-mix(in srgb,&value 70%,&text)}
?^lit.line :is(.rail,.constant,.t-comment){color:&text}
.params{cursor:pointer;$3px;|&constant-wash;color:&text}
.params>span{<none;_pre-wrap}
.params::before{content:"..."}
.params:hover{box-shadow:0 0 0 1px &line}
:is(.params.open,.all-params .params)>span{<inline}
:is(.params.open,.all-params .params)::before{content:none}
?^kept>'{background-image:linear-gradient(90deg,&residual 2px,transparent 2px 4px,&residual 4px 6px,transparent 6px)}
?^backward>'{background-image:linear-gradient(90deg,&cotangent 6px,transparent 6px)}
td:not(.hang)>wbr{<none}
.bytes{<inline-block;height:12px;min-width:1px;vertical-align:-1px;$2px;|&residual-wash;
border:1px solid &residual}
?.moved{|&residual-wash;$3px;box-shadow:0 2px &residual}
?^moved>'{box-shadow:inset -3px 0 &residual}
.t-comment{font-style:italic}
.t-name{font-weight:600}
^py [class*=mj-t-]{color:inherit}
?#table tr:is(.on,.rel,.near):nth-child(n){|&panel}
?#table ^line:is(.on,.rel,.near):nth-child(n){|oklch(&ground-lit &hue)}
?^on>.edge{box-shadow:inset 3px 0 &value}
?^rel>.edge{box-shadow:inset 3px 0 &line}
.live.wrong ^on>.edge{box-shadow:inset 3px 0 &miss}
.live.wrong mark{|&miss-wash;box-shadow:0 0 0 1px &miss}
.live.wrong .detail{border-color:&miss}
?^sel>td{outline:1px dotted &line;outline-offset:-1px}
?^found>td{|&residual-wash}
?#code ^py>td{color:&constant}
?^error>td,?^miss>'{color:&miss}
?^add>td,?#grid ^add{|&batch-wash}
?^del>td,?#grid ^del{|&miss-wash}
?^head-row>td{font-weight:600;color:&text}
?^group>td{color:&constant}
?.fold{border:0;|transparent;color:&constant;padding:0;margin:0 4px 0 0;width:16px;height:20px;cursor:pointer;
vertical-align:top}
?[aria-expanded=true]>svg{rotate:90deg}
?.n{font-weight:600;$3px;cursor:default}
?.n:is(.def,.use){|&value-wash;color:&text}
?.n.def{box-shadow:0 0 0 1px &value}
?.n.use{text-decoration:underline 2px &value}
?mark{|&value-wash;color:inherit;$3px;box-shadow:0 0 0 1px &value}
?.jump{cursor:pointer;font-weight:400;text-decoration:underline dotted &line;text-underline-offset:3px}
.untyped .type{<none}
.bar select{max-width:9.5em;text-overflow:ellipsis}
.pane.tiles-pane{max-height:none}
.with-tiles .detail{position:sticky;bottom:0}
?#tiles tbody{<flex;flex-direction:column;gap:2px}
?#tiles tr{<flex;gap:12px}
?##tiles td{<block;flex:1;min-width:0;_normal;padding:0;width:auto}
?##tiles '{flex:0 0 222px;font-family:${TEXT};color:&constant}
?.tile{<inline-block;margin:1px 3px 1px 0;padding:0 5px;font-size:12px;line-height:16px;font-weight:400;
$4px;border:1px solid &line;|&panel;color:&text;
text-decoration:none;cursor:pointer}
?.tile.value{|&value-wash;border-color:&value}
?.tile.batch{|&batch-wash;border-color:&batch;border-width:1px 1px 3px}
?.tile.residual{|&residual-wash;border-color:&residual}
?.tile.constant{|transparent;border-style:dashed}
?.tile.use{outline:2px solid &value;outline-offset:1px;text-decoration:none}
?a.tile:hover{text-decoration:underline}
?.whole{_nowrap}
.strong{font-weight:600;color:&text}
.code-text{font-family:${CODE}}
.separator{color:&line}
.chip{$4px;padding:0 3px;|&value-wash;color:&text!important}
?td .chip{_nowrap}
.dash{border:1px dashed &constant;$4px;padding:0 3px;color:&text!important}
.strip{margin-top:8px;font:13px/20px ${CODE};<flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline}
.strip b{font:600 13px/20px ${TEXT};color:&constant}
.detail{min-height:28px;margin-top:8px;padding:4px 8px;border-left:3px solid &value;
|&panel;_pre-wrap}
.text{font:13px/20px ${CODE};_pre;overflow:auto;max-height:480px;margin:0;padding:0 8px;
|&base;color:&text}
.help{margin:8px 0 0;padding:4px 8px;|&panel}
.help kbd{font:12px/16px ${CODE};border:1px solid &line;$3px;padding:0 4px;
|&base;color:&text}
.help div{<inline-block;margin:2px 14px 2px 0}
?svg.icon{width:16px;height:16px;margin:0 auto;fill:none;stroke:currentcolor;stroke-width:1.8;
stroke-linecap:round;stroke-linejoin:round}
?.help .legend{<block}
.meaning{<inline-block;margin-right:14px}
.swatch{font:600 13px/20px ${CODE};padding:0 4px;$3px}
?svg{<block;height:auto;max-width:none;overflow:visible}
?svg text{font:12px ${CODE};fill:&text}
?.pane.scene-pane{max-height:max(620px,100vh - 180px)}
.live.with-strip .pane{max-height:max(360px,100vh - 400px)}
div.map{position:sticky;bottom:0;left:0;height:0}
?div.map>svg{position:absolute;|&base;border:1px solid &line;overflow:hidden;cursor:pointer;touch-action:none}
.live:not(.maps) .covers{<none}
?.map .halo{<none}
?.map>svg>rect{fill:&value-wash;fill-opacity:.5;stroke:&value;vector-effect:non-scaling-stroke}
.live:fullscreen{overflow:auto}
?:fullscreen .pane{max-height:none}
?.fold svg{width:9px}
?svg.scene{font-variant-numeric:tabular-nums}
?svg.glyph{<inline-block;vertical-align:middle}
?svg.scene text{_pre}
?g.idle{pointer-events:none}
?g.mark{outline:none}
?g.go{cursor:pointer}
?svg .halo{fill:transparent;stroke:transparent;pointer-events:all}
?svg path.halo{fill:none;pointer-events:stroke}
?g.near>.halo{stroke:&line;stroke-width:1}
?g.rel>.halo{stroke:&line;stroke-width:2}
?g.on>rect.halo{fill:&base;stroke:&value;stroke-width:2}
?g:is(.near,.rel,.on)>path.halo{stroke:&value-wash;stroke-width:9}
?g.mark:focus-visible>.halo{stroke:&value;stroke-width:2;stroke-dasharray:4 2}
?g.later>:not(text){opacity:.4}
?g.later>text{fill:&constant!important}
?[hidden]{<none!important}
@media (prefers-reduced-motion:no-preference){?g.mark{transition:transform 160ms ease-out}
?mark{transition:background 160ms ease-out}}
@media print{.panes,.column{<block}.pane{max-height:none!important;overflow:visible;margin:0 0 12px}?:is(button,select,input,.map,.axes){<none}
?svg.scene{max-width:100%;overflow:clip}.title{position:static;break-after:avoid}?#table:not(.code) :is(td,th){width:auto}
?td+td:not(.sized){min-width:0!important;_pre-wrap;overflow-wrap:break-word}}
@container (890px>=width>740px){?##plain td:nth-child(2):nth-last-child(2){width:auto;_pre-wrap;min-width:calc(&middle + 20px)}}
@container (740px>=width){
?#tiles tr{<block}
.panes{flex-direction:column}
.column{width:100%;flex:none}
.handle,.gap{<none}
.bytes{--mj-pixel:.5px}
.pane{max-height:max(360px,56vh)}
?#table td{_pre-wrap}
?#code '{_pre}
?td .chip{_normal}
?td .size{_nowrap}
?#listing .rail{<none}
?#grid{<grid;grid-template-columns:repeat(&columns,auto) minmax(0,1fr)}
?#grid tbody{<contents}
?#grid tr{<grid;grid-template-columns:subgrid;grid-column:1/-1}
?##grid :is(td,th){width:auto;min-width:0}
?##grid td+td{overflow-wrap:break-word}
?##grid td.sized{min-width:auto}
?#table td.rail:empty{<none}
?#grid td:only-child{grid-column:1/-1}
?#plain td.rail:last-child:nth-child(n+3){grid-column:1/-1;padding-left:4ch}
?#prose{grid-template-columns:fit-content(42%) minmax(0,1fr)}
?#prose tr:not(.head-row) '{_normal}
?#sides td.other{<none}
?#sides td:nth-child(n+2){grid-column:2/-1}
?#table:not(.sized) thead{<none}
?#grid thead{<contents}
?##grid th{overflow:visible}
?#grid thead :last-child:nth-child(n+3){<none}
.where,.bar :is([type=search],button[title=search]~*){order:1}
.where{flex:33cqw;max-width:none}
.bar select[title="show only"]{max-width:5.5em}}
@container (width>890px){?##plain td:not(:last-child) wbr,?#prose ' wbr{<none}}
@container (460px>=width){?td .size{_normal}
?##plain :is(td,th){padding-right:4px}
?#pair :is(td,th):nth-child(-n+2),?#row :is(td,th):first-child{grid-column:1/-1}
?#pair td+td{padding-left:2ch}}
`;

const light = variables(false);
const dark = variables(true);
/** The style sheet, scoped to the views. */
export const RULES =
  `.minijax-view{${light}}` +
  `body[data-jp-theme-light=false] .minijax-view,body.vscode-dark .minijax-view,` +
  `html[data-theme=dark] .minijax-view{${dark}}` +
  `@media (prefers-color-scheme:dark){` +
  `body:not([data-jp-theme-light]):not(.vscode-light) .minijax-view{${dark}}` +
  `html[data-theme=light] .minijax-view{${light}}}` +
  WORDS.split("!").reduce((rules, word) => rules.replaceAll(word[0]!, word.slice(1)), WRITTEN.replace(/\.(?=[a-z])/gi, ".mj-"))
    .replace(/&([a-z-]+)/g, "var(--mj-$1)") +
  roles;
