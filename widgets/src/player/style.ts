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
const LIGHT = { base: "#FFFFFF", panel: "#F4F6F9", text: "#1B2027", line: "#7A8594" };
const DARK = { base: "#14171C", panel: "#1D222A", text: "#E6EAF0", line: "#6B7685" };

function variables(dark: boolean): string {
  const declared = Object.entries(dark ? DARK : LIGHT).map(([n, c]) => `--mj-${n}:${c}`);
  for (const [role, colours] of Object.entries(PALETTE)) {
    const [ink, wash] = dark ? [colours[2], colours[3]] : [colours[0], colours[1]];
    declared.push(`--mj-${role}:${ink}`, `--mj-${role}-wash:${wash}`);
  }
  return declared.join(";");
}

const roles = Object.keys(PALETTE)
  .map((role) => `span.mj-${role}{color:var(--mj-${role})}`)
  .join("");

const CODE =
  "var(--jp-code-font-family,var(--vscode-editor-font-family,ui-monospace,SFMono-Regular,Menlo,Consolas,monospace))";
const TEXT = "var(--jp-ui-font-family,var(--vscode-font-family,system-ui,sans-serif))";

const RULES = `
.mj-live{container-type:inline-size;font:13px/20px ${TEXT};color:var(--mj-text);
background:var(--mj-base);padding:8px 12px;border-radius:4px;outline-offset:2px;text-align:left}
.mj-live *{box-sizing:border-box}
.mj-live:focus-visible,.mj-live button:focus-visible,.mj-live input:focus-visible,
.mj-live .mj-pane:focus-visible,.mj-live tr:focus-visible{outline:2px solid var(--mj-value);outline-offset:2px}
.mj-live .mj-pane:focus-visible{outline-offset:-2px}
.mj-still{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline;margin:0 0 8px}
.mj-still .mj-head{flex:1 1 220px;margin:0}
.mj-still .mj-bar{margin:0;flex:none}
.mj-still .mj-gap{display:none}
.mj-still .mj-where{min-width:0;flex:none}
.mj-head{font-size:15px;line-height:22px;font-weight:600;margin:0 0 8px;overflow-wrap:anywhere}
.mj-bar{display:flex;flex-wrap:wrap;gap:4px;align-items:center;margin:0 0 8px}
.mj-bar button,.mj-bar select,.mj-bar input[type=search],.mj-foot button{font:inherit;color:var(--mj-text);
background:var(--mj-panel);border:1px solid transparent;border-radius:4px;min-width:24px;min-height:24px;
height:24px;padding:0 6px;cursor:pointer}
.mj-bar button:hover{border-color:var(--mj-line)}
.mj-bar button[aria-pressed=true]{background:var(--mj-value-wash);border-color:var(--mj-value)}
.mj-bar button:disabled{opacity:.4;cursor:default}
.mj-bar input[type=range]{flex:1 1 90px;min-width:60px;max-width:220px;height:24px;margin:0 4px;
accent-color:var(--mj-value);background:transparent}
.mj-bar input[type=search]{width:150px;cursor:text}
.mj-where{font-variant-numeric:tabular-nums;flex:0 1 auto;min-width:8em;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.mj-gap{flex:1}
.mj-panes{display:flex;flex-wrap:wrap;gap:12px;align-items:flex-start}
.mj-column{min-width:min(var(--mj-least),100%);flex:1 1 var(--mj-least);display:flex;flex-direction:column;gap:12px}
.mj-column.mj-wide{flex:1 1 100%}
.mj-pane{min-width:0;flex:none;background:var(--mj-base);border-radius:4px;max-height:max(480px,72vh);
overflow:auto;position:relative}
.mj-pane:not(:only-child){max-height:max(300px,60vh)}
.mj-title{overflow-wrap:anywhere;font-weight:600;color:var(--mj-constant);padding:0 8px;position:sticky;top:0;left:0;z-index:1;
background:var(--mj-base)}
.mj-live table.mj-table{border-collapse:collapse;border:0;margin:0;font:13px/20px ${CODE};width:100%;
table-layout:auto;background:var(--mj-base);color:var(--mj-text)}
.mj-live table.mj-table td,.mj-live table.mj-table th{border:0;padding:0 12px 0 8px;text-align:left;line-height:20px;
vertical-align:top;white-space:pre;background:transparent;font-weight:400;max-width:none;width:1px}
.mj-live table.mj-table td:last-child,.mj-live table.mj-table th:last-child{width:auto}
.mj-live table.mj-table thead{border:0}
.mj-live table.mj-table th{color:var(--mj-constant);font-family:${TEXT}}
.mj-live table.mj-table tr,.mj-live table.mj-table tr:nth-child(even),.mj-live table.mj-table tr:hover{
background:transparent;border:0;padding:0}
.mj-live tr.mj-r{cursor:default}
.mj-live tr.mj-r.mj-go{cursor:pointer}
.mj-live .mj-listing td.mj-rail{color:var(--mj-constant)}
.mj-live table.mj-code td:first-child{color:var(--mj-constant);text-align:right;padding-right:8px;user-select:none;
position:sticky;left:0;background:var(--mj-base)}
.mj-live table.mj-prose td{white-space:pre-wrap;font-family:${TEXT};padding-bottom:2px}
.mj-live table.mj-prose td:first-child{white-space:nowrap;color:var(--mj-constant)}
.mj-live table.mj-sides td:nth-child(n+2),.mj-live table.mj-sides th:nth-child(n+2){width:50%}
.mj-live table.mj-table:not(.mj-code):not(.mj-listing):not(.mj-sides) td.mj-rail:last-child{white-space:normal}
.mj-live table.mj-table.mj-plain td.mj-rail:last-child{min-width:calc(var(--mj-last) + 20px)}
.mj-live table.mj-plain td:first-child:not(:only-child){max-width:52ch;overflow:hidden;text-overflow:ellipsis}
.mj-live table.mj-listing td:first-child,.mj-live table.mj-code td:nth-child(2),.mj-live table.mj-sides td:nth-child(n+2){
white-space:pre-wrap;overflow-wrap:anywhere}
.mj-live table.mj-plain td:only-child{white-space:pre-wrap;overflow-wrap:anywhere}
.mj-live table.mj-listing td:first-child:not(:only-child){width:var(--mj-first)}
.mj-live table.mj-listing td.mj-rail:last-child{max-width:0;min-width:calc(var(--mj-last) + 20px);overflow:hidden;
text-overflow:ellipsis}
.mj-live table.mj-table td.mj-hang{padding-left:calc(var(--mj-at,8px) + var(--mj-hang)*1ch);
text-indent:calc(var(--mj-hang)*-1ch)}
.mj-live .mj-changed{background:var(--mj-residual-wash);border-radius:3px;box-shadow:0 0 0 1px var(--mj-residual)}
.mj-live table.mj-table td:has(>.mj-size){text-align:right}
.mj-live tr.mj-later{opacity:.68}
.mj-live tr.mj-on>td{background:var(--mj-panel)}
.mj-live tr.mj-on>td:first-child{box-shadow:inset 3px 0 var(--mj-value)}
.mj-live tr.mj-rel>td{background:var(--mj-panel)}
.mj-live tr.mj-rel>td:first-child{box-shadow:inset 3px 0 var(--mj-line)}
.mj-live tr.mj-near>td{background:var(--mj-panel)}
.mj-live.mj-wrong tr.mj-on>td:first-child{box-shadow:inset 3px 0 var(--mj-miss)}
.mj-live.mj-wrong mark{background:var(--mj-miss-wash);box-shadow:0 0 0 1px var(--mj-miss)}
.mj-live.mj-wrong .mj-detail{border-color:var(--mj-miss)}
.mj-live tr.mj-sel>td{outline:1px dotted var(--mj-line);outline-offset:-1px}
.mj-live tr.mj-found>td{background:var(--mj-residual-wash)}
.mj-live table.mj-code tr.mj-py>td{color:var(--mj-constant)}
.mj-live tr.mj-error>td,.mj-live tr.mj-miss>td:first-child{color:var(--mj-miss)}
.mj-live tr.mj-add>td{background:var(--mj-batch-wash)}
.mj-live tr.mj-del>td{background:var(--mj-miss-wash)}
.mj-live tr.mj-head-row>td{font-weight:600;color:var(--mj-text)}
.mj-live tr.mj-group>td{color:var(--mj-constant)}
.mj-live .mj-fold{font:inherit;line-height:20px;border:0;background:transparent;color:var(--mj-constant);padding:0;margin:0 4px 0 0;
width:16px;height:20px;cursor:pointer;text-align:center}
.mj-live .mj-n{font-weight:600;border-radius:3px;cursor:default}
.mj-live .mj-n.mj-def{background:var(--mj-value-wash);color:var(--mj-text);box-shadow:0 0 0 1px var(--mj-value)}
.mj-live .mj-n.mj-use{background:var(--mj-value-wash);color:var(--mj-text);
text-decoration:underline 2px var(--mj-value)}
.mj-live mark{background:var(--mj-value-wash);color:inherit;border-radius:3px;box-shadow:0 0 0 1px var(--mj-value)}
.mj-live .mj-jump{cursor:pointer;font-weight:400;text-decoration:underline dotted var(--mj-line);text-underline-offset:3px}
.mj-untyped .mj-type{display:none}
.mj-bar select{max-width:9.5em;text-overflow:ellipsis}
.mj-bar select.mj-filtering{background:var(--mj-value-wash);border-color:var(--mj-value)}
.mj-pane:has(.mj-tiles){max-height:none}
.mj-live:has(.mj-tiles) .mj-detail{position:sticky;bottom:0}
.mj-live table.mj-tiles tbody{display:flex;flex-wrap:wrap;gap:4px 16px}
.mj-live table.mj-tiles tr{display:block;max-width:100%}
.mj-live table.mj-tiles tr:first-child{width:100%}
.mj-live table.mj-table.mj-tiles td{display:block;white-space:normal;padding:0;width:auto}
.mj-live table.mj-tiles td:first-child{font-family:${TEXT};color:var(--mj-constant)}
.mj-live table.mj-tiles:has(thead) tbody{display:table-row-group}
.mj-live table.mj-tiles:has(thead) tr{display:table-row}
.mj-live table.mj-table.mj-tiles:has(thead) td{display:table-cell;padding:2px 12px 4px 0;vertical-align:top}
.mj-live table.mj-tiles:has(thead){table-layout:fixed;width:100%}
.mj-live table.mj-tiles:has(thead) th:first-child{width:104px}
.mj-live table.mj-tiles:has(thead) th:nth-child(2){width:28%}
.mj-live table.mj-tiles:has(thead) th:nth-child(3){width:36%}
.mj-live table.mj-tiles:has(thead) th:nth-child(4){width:auto}
.mj-live table.mj-tiles:has(thead) .mj-tile{min-width:0;font-size:12px;line-height:16px;font-weight:400;margin:1px 3px 1px 0}
.mj-live .mj-tile{display:inline-block;margin:2px 4px 2px 0;padding:1px 6px;min-width:4em;text-align:center;
border-radius:4px;border:1px solid var(--mj-line);background:var(--mj-panel);color:var(--mj-text);
text-decoration:none;cursor:pointer}
.mj-live .mj-tile.mj-value{background:var(--mj-value-wash);border-color:var(--mj-value);color:var(--mj-text)}
.mj-live .mj-tile.mj-batch{background:var(--mj-batch-wash);border-color:var(--mj-batch);border-width:1px 1px 3px;
color:var(--mj-text)}
.mj-live .mj-tile.mj-residual{background:var(--mj-residual-wash);border-color:var(--mj-residual);color:var(--mj-text)}
.mj-live .mj-tile.mj-constant{background:transparent;border-style:dashed;color:var(--mj-text)}
.mj-live .mj-tile.mj-use{outline:2px solid var(--mj-value);outline-offset:1px;text-decoration:none}
.mj-live a.mj-tile:hover{text-decoration:underline}
.mj-strong{font-weight:600;color:var(--mj-text)}
.mj-code-text{font-family:${CODE}}
.mj-separator{color:var(--mj-line)}
.mj-chip{border-radius:4px;padding:0 3px;background:var(--mj-value-wash);color:var(--mj-text)!important}
.mj-live td .mj-chip{white-space:nowrap}
.mj-dash{border:1px dashed var(--mj-constant);border-radius:4px;padding:0 3px;color:var(--mj-text)!important}
.mj-strip{margin-top:8px;font:13px/20px ${CODE};display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline}
.mj-strip b{font:600 13px/20px ${TEXT};color:var(--mj-constant)}
.mj-detail{min-height:28px;margin-top:8px;padding:4px 8px;border-left:3px solid var(--mj-value);
background:var(--mj-panel);overflow-wrap:anywhere;white-space:pre-wrap}
.mj-text{font:13px/20px ${CODE};white-space:pre;overflow:auto;max-height:480px;margin:0;padding:0 8px;
background:var(--mj-base);color:var(--mj-text)}
.mj-help{margin:8px 0 0;padding:4px 8px;background:var(--mj-panel)}
.mj-help kbd{font:12px/16px ${CODE};border:1px solid var(--mj-line);border-radius:3px;padding:0 4px;
background:var(--mj-base);color:var(--mj-text)}
.mj-help div{display:inline-block;margin:2px 14px 2px 0}
.mj-live svg{display:block;max-width:100%;height:auto}
.mj-live svg text{font:12px ${CODE};fill:var(--mj-text)}
.mj-live .mj-pane.mj-scene-pane{max-height:620px}
.mj-live svg.mj-scene{max-width:none;font-variant-numeric:tabular-nums;overflow:visible}
.mj-live svg.mj-glyph{display:inline-block;vertical-align:middle;height:auto;overflow:visible}
.mj-live svg.mj-scene text{white-space:pre}
.mj-live g.mj-idle{pointer-events:none}
.mj-live g.mj-mark{outline:none}
.mj-live g.mj-go{cursor:pointer}
.mj-live svg .mj-halo{fill:transparent;stroke:transparent;pointer-events:all}
.mj-live svg path.mj-halo{fill:none;pointer-events:stroke}
.mj-live g.mj-near>.mj-halo{stroke:var(--mj-line);stroke-width:1}
.mj-live g.mj-rel>.mj-halo{stroke:var(--mj-line);stroke-width:2}
.mj-live g.mj-on>rect.mj-halo{fill:var(--mj-base);stroke:var(--mj-value);stroke-width:2}
.mj-live g:is(.mj-near,.mj-rel,.mj-on)>path.mj-halo{stroke:var(--mj-value-wash);stroke-width:9}
.mj-live g.mj-mark:focus-visible>.mj-halo{stroke:var(--mj-value);stroke-width:2;stroke-dasharray:4 2}
.mj-live g.mj-later{opacity:.28}
.mj-live [hidden]{display:none!important}
@media (prefers-reduced-motion:no-preference){.mj-live g.mj-mark{transition:transform 160ms ease-out,opacity 160ms ease-out}
.mj-live mark{transition:background 160ms ease-out}}
@container (max-width:640px){
.mj-live table.mj-tiles:has(thead) thead{display:none}
.mj-live table.mj-tiles:has(thead) tr,.mj-live table.mj-table.mj-tiles:has(thead) td{display:block}
.mj-panes{flex-direction:column}
.mj-column{width:100%;flex:none}
.mj-pane{max-height:360px}
.mj-live table.mj-table td{white-space:pre-wrap;overflow-wrap:anywhere}
.mj-live table.mj-code td:first-child{white-space:pre}
.mj-live table.mj-listing .mj-rail{display:none}
.mj-live table.mj-grid{display:grid;grid-template-columns:repeat(var(--mj-columns),auto) minmax(0,1fr)}
.mj-live table.mj-grid tbody{display:contents}
.mj-live table.mj-grid tr{display:grid;grid-template-columns:subgrid;grid-column:1/-1}
.mj-live table.mj-grid tr.mj-on,.mj-live table.mj-grid tr.mj-rel{background:var(--mj-panel)}
.mj-live table.mj-grid tr.mj-add{background:var(--mj-batch-wash)}
.mj-live table.mj-grid tr.mj-del{background:var(--mj-miss-wash)}
.mj-live table.mj-table.mj-grid td{width:auto;min-width:0}
.mj-live table.mj-table td.mj-rail:empty{display:none}
.mj-live table.mj-plain td.mj-rail:last-child:nth-child(n+3){grid-column:1/-1;padding-left:4ch}
.mj-live table.mj-prose{grid-template-columns:fit-content(42%) minmax(0,1fr)}
.mj-live table.mj-prose tr:not(.mj-head-row) td:first-child{white-space:normal}
.mj-live table.mj-sides td:nth-child(2):not(:has(+td:empty)){display:none}
.mj-live table.mj-sides td:nth-child(n+2){grid-column:2/-1}
.mj-live table.mj-table thead{display:none}
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
    RULES +
    roles
  ).replaceAll("\n", "");
}
