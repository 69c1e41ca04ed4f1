// The visual language: colours by role as variables, which follow the page's theme.

/** role: ink and wash on light, ink and wash on dark. */
const PALETTE: Record<string, [string, string, string, string]> = {
  value: ["#246CCC", "#E1ECFB", "#80C0EF", "#12304A"],
  constant: ["#5A6472", "#E9ECF0", "#A3ADBA", "#2A3038"],
  residual: ["#A06109", "#FBEFD9", "#FDCF77", "#3B2E10"],
  cotangent: ["#6D195F", "#F6E2F1", "#F44891", "#45152C"],
  batch: ["#006446", "#DBF1E8", "#3FE0A6", "#0D3A2B"],
  mesh: ["#4B11A9", "#EBE4FA", "#987CF2", "#292050"],
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

const CODE =
  "var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,monospace))";
const TEXT = "var(--jp-ui-font-family,var(--vscode-font-family,system-ui,sans-serif))";

/** `?` stands for `.mj-live `, with which most rules begin, `&x` for `var(--mj-x)`, `#x`
 *  for `table.mj-x`: a page carries all of this. */
const RULES = `
.mj-live{container-type:inline-size;font:13px/20px ${TEXT};color:&text;
background:&base;padding:8px 12px;border-radius:4px;outline-offset:2px;text-align:left}
?*{box-sizing:border-box}
.mj-live:focus-visible,?button:focus-visible,?input:focus-visible,
?.mj-pane:focus-visible,?tr:focus-visible{outline:2px solid &value;outline-offset:2px}
?.mj-pane:focus-visible{outline-offset:-2px}
.mj-still{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline;margin:0 0 8px}
.mj-still .mj-head{flex:1 1 220px;margin:0}
.mj-still .mj-bar{margin:0;flex:none}
.mj-still .mj-gap{display:none}
.mj-still .mj-where{min-width:0;flex:none}
.mj-head{font-size:15px;line-height:22px;font-weight:600;margin:0 0 8px;overflow-wrap:anywhere}
.mj-bar{display:flex;flex-wrap:wrap;gap:4px;align-items:center;margin:0 0 8px}
.mj-bar button,.mj-bar select,.mj-bar input[type=search],.mj-foot button{font:inherit;color:&text;
background:&panel;border:1px solid transparent;border-radius:4px;min-width:24px;min-height:24px;
height:24px;padding:0 6px;cursor:pointer}
.mj-bar button:hover{border-color:&line}
.mj-bar button[aria-pressed=true]{background:&value-wash;border-color:&value}
.mj-bar button:disabled{opacity:.4;cursor:default}
.mj-bar input[type=range]{flex:1 1 90px;min-width:60px;max-width:220px;height:24px;margin:0 4px;
accent-color:&value;background:transparent}
.mj-bar input[type=search]{width:150px;cursor:text}
.mj-where{font-variant-numeric:tabular-nums;flex:0 1 auto;min-width:8em;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.mj-gap{flex:1}
.mj-panes{display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start}
.mj-column{min-width:min(&least,100%);flex:1 1 &least;display:flex;flex-direction:column;gap:12px}
.mj-column.mj-wide{flex:1 1 100%}
.mj-pane{min-width:0;flex:none;background:&base;border-radius:4px;max-height:max(480px,100vh - 200px);
overflow:auto;position:relative}
.mj-pane:not(:only-child){max-height:max(300px,66vh)}
.mj-title{overflow-wrap:anywhere;font-weight:600;color:&constant;padding:0 8px;position:sticky;top:0;left:0;z-index:1;
background:&base}
?#table{border-collapse:collapse;border:0;margin:0;font:13px/20px ${CODE};width:100%;
table-layout:auto;background:&base;color:&text}
?#table td,?#table th{border:0;padding:0 12px 0 8px;text-align:left;line-height:20px;
vertical-align:top;white-space:pre;background:transparent;font-weight:400;max-width:none;width:1px}
?#table td:last-child,?#table th:last-child{width:auto}
?#table thead{border:0}
?#table th{color:&constant;font-family:${TEXT}}
?#table tr,?#table tr:nth-child(even),?#table tr:hover{
background:transparent;border:0;padding:0}
?tr.mj-r{cursor:default}
?tr.mj-r.mj-go{cursor:pointer}
?.mj-listing td.mj-rail{color:&constant}
?#code td:first-child{color:&constant;text-align:right;padding-right:8px;user-select:none;
position:sticky;left:0;background:&base}
?#prose td{white-space:pre-wrap;font-family:${TEXT};padding-bottom:2px}
?#prose td:first-child{white-space:nowrap;color:&constant}
?#sides td:nth-child(n+2),?#sides th:nth-child(n+2){width:50%}
?#table:not(.mj-code):not(.mj-listing):not(.mj-sides) td.mj-rail:last-child{white-space:normal}
?##plain td.mj-rail:last-child{min-width:calc(&last + 20px)}
?#plain td:first-child:not(:only-child){max-width:52ch;overflow:hidden;text-overflow:ellipsis}
?#listing td:first-child,?#code td:nth-child(2),?#sides td:nth-child(n+2){
white-space:pre-wrap;overflow-wrap:anywhere}
?#plain td:only-child{white-space:pre-wrap;overflow-wrap:anywhere}
?#listing td:first-child:not(:only-child){width:&first}
?#listing td.mj-rail:last-child{max-width:0;min-width:calc(&last + 20px);overflow:hidden;
text-overflow:ellipsis}
?#table td.mj-hang{padding-left:calc(var(--mj-at,8px) + &hang*1ch);
text-indent:calc(&hang*-1ch)}
?.mj-changed{background:&residual-wash;border-radius:3px;box-shadow:0 0 0 1px &residual}
?#table td:has(>.mj-size){text-align:right}
?tr.mj-later{opacity:.74}
?tr.mj-line>td{background:oklch(&ground &hue)}
?#code tr.mj-line>td:first-child{background:oklch(&ground-lit &hue);color:&text}
?tr.mj-line:is(.mj-on,.mj-rel,.mj-near)>td{background:oklch(&ground-lit &hue)}
?tr.mj-line:is(.mj-on,.mj-rel,.mj-near) .mj-value{color:color-mix(in srgb,&value 70%,&text)}
?tr.mj-line:is(.mj-on,.mj-rel,.mj-near) :is(.mj-rail,.mj-constant,.mj-t-comment){color:&text}
.mj-params{cursor:pointer;border-radius:3px;background:&constant-wash;color:&text}
.mj-params>span{display:none;white-space:pre-wrap}
.mj-params::before{content:"..."}
.mj-params:hover{box-shadow:0 0 0 1px &line}
:is(.mj-params.mj-open,.mj-all-params .mj-params)>span{display:inline}
:is(.mj-params.mj-open,.mj-all-params .mj-params)::before{content:none}
.mj-bytes{display:inline-block;height:12px;min-width:1px;vertical-align:-1px;border-radius:2px;background:&residual-wash;
border:1px solid &residual}
?.mj-moved{background:&residual-wash;border-radius:3px;box-shadow:0 2px &residual}
?tr.mj-moved>td:first-child{box-shadow:inset -3px 0 &residual}
.mj-t-comment{font-style:italic}
.mj-t-name{font-weight:600}
tr.mj-py [class*=mj-t-]{color:inherit}
?tr.mj-on>td{background:&panel}
?tr.mj-on>td:first-child{box-shadow:inset 3px 0 &value}
?tr.mj-rel>td{background:&panel}
?tr.mj-rel>td:first-child{box-shadow:inset 3px 0 &line}
?tr.mj-near>td{background:&panel}
.mj-live.mj-wrong tr.mj-on>td:first-child{box-shadow:inset 3px 0 &miss}
.mj-live.mj-wrong mark{background:&miss-wash;box-shadow:0 0 0 1px &miss}
.mj-live.mj-wrong .mj-detail{border-color:&miss}
?tr.mj-sel>td{outline:1px dotted &line;outline-offset:-1px}
?tr.mj-found>td{background:&residual-wash}
?#code tr.mj-py>td{color:&constant}
?tr.mj-error>td,?tr.mj-miss>td:first-child{color:&miss}
?tr.mj-add>td{background:&batch-wash}
?tr.mj-del>td{background:&miss-wash}
?tr.mj-head-row>td{font-weight:600;color:&text}
?tr.mj-group>td{color:&constant}
?.mj-fold{font:inherit;line-height:20px;border:0;background:transparent;color:&constant;padding:0;margin:0 4px 0 0;
width:16px;height:20px;cursor:pointer;text-align:center}
?.mj-n{font-weight:600;border-radius:3px;cursor:default}
?.mj-n.mj-def{background:&value-wash;color:&text;box-shadow:0 0 0 1px &value}
?.mj-n.mj-use{background:&value-wash;color:&text;
text-decoration:underline 2px &value}
?mark{background:&value-wash;color:inherit;border-radius:3px;box-shadow:0 0 0 1px &value}
?.mj-jump{cursor:pointer;font-weight:400;text-decoration:underline dotted &line;text-underline-offset:3px}
.mj-untyped .mj-type{display:none}
.mj-bar select{max-width:9.5em;text-overflow:ellipsis}
.mj-bar select.mj-filtering{background:&value-wash;border-color:&value}
.mj-pane:has(.mj-tiles){max-height:none}
.mj-live:has(.mj-tiles) .mj-detail{position:sticky;bottom:0}
?#tiles tbody{display:flex;flex-direction:column;gap:4px}
?#tiles tr{display:flex;gap:12px}
?##tiles td{display:block;flex:1 1 0;min-width:0;white-space:normal;padding:0;width:auto}
?##tiles td:first-child{flex:0 0 232px;font-family:${TEXT};color:&constant}
?.mj-tile{display:inline-block;margin:1px 3px 1px 0;padding:0 5px;font-size:12px;line-height:16px;font-weight:400;
border-radius:4px;border:1px solid &line;background:&panel;color:&text;
text-decoration:none;cursor:pointer}
?.mj-tile.mj-value{background:&value-wash;border-color:&value;color:&text}
?.mj-tile.mj-batch{background:&batch-wash;border-color:&batch;border-width:1px 1px 3px;
color:&text}
?.mj-tile.mj-residual{background:&residual-wash;border-color:&residual;color:&text}
?.mj-tile.mj-constant{background:transparent;border-style:dashed;color:&text}
?.mj-tile.mj-use{outline:2px solid &value;outline-offset:1px;text-decoration:none}
?a.mj-tile:hover{text-decoration:underline}
.mj-strong{font-weight:600;color:&text}
.mj-code-text{font-family:${CODE}}
.mj-separator{color:&line}
.mj-chip{border-radius:4px;padding:0 3px;background:&value-wash;color:&text!important}
?td .mj-chip{white-space:nowrap}
.mj-dash{border:1px dashed &constant;border-radius:4px;padding:0 3px;color:&text!important}
.mj-strip{margin-top:8px;font:13px/20px ${CODE};display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline}
.mj-strip b{font:600 13px/20px ${TEXT};color:&constant}
.mj-detail{min-height:28px;margin-top:8px;padding:4px 8px;border-left:3px solid &value;
background:&panel;overflow-wrap:anywhere;white-space:pre-wrap}
.mj-text{font:13px/20px ${CODE};white-space:pre;overflow:auto;max-height:480px;margin:0;padding:0 8px;
background:&base;color:&text}
.mj-help{margin:8px 0 0;padding:4px 8px;background:&panel}
.mj-help kbd{font:12px/16px ${CODE};border:1px solid &line;border-radius:3px;padding:0 4px;
background:&base;color:&text}
.mj-help div{display:inline-block;margin:2px 14px 2px 0}
?svg.mj-icon{display:block;width:16px;height:16px;margin:0 auto;fill:none;stroke:currentColor;stroke-width:1.8;
stroke-linecap:round;stroke-linejoin:round}
.mj-legend{display:block!important}
.mj-meaning{display:inline-block;margin-right:14px}
.mj-swatch{font:600 13px/20px ${CODE};padding:0 4px;border-radius:3px}
?svg{display:block;max-width:100%;height:auto}
?svg text{font:12px ${CODE};fill:&text}
?.mj-pane.mj-scene-pane{max-height:620px}
?svg.mj-scene{max-width:none;font-variant-numeric:tabular-nums;overflow:visible}
?svg.mj-glyph{display:inline-block;vertical-align:middle;height:auto;overflow:visible}
?svg.mj-scene text{white-space:pre}
?g.mj-idle{pointer-events:none}
?g.mj-mark{outline:none}
?g.mj-go{cursor:pointer}
?svg .mj-halo{fill:transparent;stroke:transparent;pointer-events:all}
?svg path.mj-halo{fill:none;pointer-events:stroke}
?g.mj-near>.mj-halo{stroke:&line;stroke-width:1}
?g.mj-rel>.mj-halo{stroke:&line;stroke-width:2}
?g.mj-on>rect.mj-halo{fill:&base;stroke:&value;stroke-width:2}
?g:is(.mj-near,.mj-rel,.mj-on)>path.mj-halo{stroke:&value-wash;stroke-width:9}
?g.mj-mark:focus-visible>.mj-halo{stroke:&value;stroke-width:2;stroke-dasharray:4 2}
?g.mj-later{opacity:.4}
?[hidden]{display:none!important}
@media (prefers-reduced-motion:no-preference){?g.mj-mark{transition:transform 160ms ease-out,opacity 160ms ease-out}
?mark{transition:background 160ms ease-out}}
@container (max-width:640px){
?#tiles tr{display:block}
.mj-panes{flex-direction:column}
.mj-column{width:100%;flex:none}
.mj-bytes{--mj-pixel:.5px}
.mj-pane{max-height:max(360px,56vh)}
?#table td{white-space:pre-wrap;overflow-wrap:anywhere}
?#code td:first-child{white-space:pre}
?#listing .mj-rail{display:none}
?#grid{display:grid;grid-template-columns:repeat(&columns,auto) minmax(0,1fr)}
?#grid tbody{display:contents}
?#grid tr{display:grid;grid-template-columns:subgrid;grid-column:1/-1}
?#grid tr.mj-on,?#grid tr.mj-rel{background:&panel}
?#grid tr.mj-add{background:&batch-wash}
?#grid tr.mj-del{background:&miss-wash}
?##grid td{width:auto;min-width:0}
?#table td.mj-rail:empty{display:none}
?#plain td.mj-rail:last-child:nth-child(n+3){grid-column:1/-1;padding-left:4ch}
?#prose{grid-template-columns:fit-content(42%) minmax(0,1fr)}
?#prose tr:not(.mj-head-row) td:first-child{white-space:normal}
?#sides td:nth-child(2):not(:has(+td:empty)){display:none}
?#sides td:nth-child(n+2){grid-column:2/-1}
?#table thead{display:none}
.mj-bar>:not(button,[type=range],[aria-label="steps per second"]),.mj-bar button[title=search]~*{order:2}
.mj-bar button[title=search]{order:1}
.mj-bar input[type=range]{flex-basis:60px}
.mj-where{flex:1 1 6em;min-width:0}
.mj-gap{display:none}
.mj-bar select[title="show only"]{max-width:5.5em}
.mj-still{flex-wrap:wrap}
.mj-still .mj-head{flex:1 1 230px}}
`;

/** The style sheet, scoped to the views. */
export function styleSheet(): string {
  const light = variables(false);
  const dark = variables(true);
  return (
    `.minijax-view{${light}}` +
    `body[data-jp-theme-light=false] .minijax-view,body.vscode-dark .minijax-view,` +
    `html[data-theme=dark] .minijax-view{${dark}}` +
    `@media (prefers-color-scheme:dark){` +
    `body:not([data-jp-theme-light]):not(.vscode-light) .minijax-view{${dark}}` +
    `html[data-theme=light] .minijax-view{${light}}}` +
    RULES.replaceAll("?", ".mj-live ").replaceAll("#", "table.mj-").replace(/&([a-z-]+)/g, "var(--mj-$1)") +
    roles
  ).replaceAll("\n", "");
}
