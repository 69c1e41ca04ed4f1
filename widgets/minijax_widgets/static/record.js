(function(){var d=document,rows=[].slice.call(d.querySelectorAll('.row')),
lanes=d.getElementById('lanes'),at=d.getElementById('at'),now=0,plain=d.getElementById('plain'),
main=d.querySelector('main'),help=d.getElementById('help');
function go(n,focus){if(!rows.length)return;now=Math.max(0,Math.min(rows.length-1,n));
rows.forEach(function(r,i){if(i===now)r.setAttribute('aria-current','true');
else r.removeAttribute('aria-current')});
d.querySelectorAll('.lane').forEach(function(l){if(+l.dataset.n===now)
l.setAttribute('aria-current','true');else l.removeAttribute('aria-current')});
at.textContent=rows[now].dataset.at+', '+(now+1)+' of '+rows.length;
if(focus){var f=rows[now].closest('.rest');if(f)f.open=true;rows[now].focus({preventScroll:true});rows[now].scrollIntoView({block:'nearest'})}}
rows.forEach(function(r,i){r.addEventListener('focus',function(){go(i)});
r.addEventListener('click',function(){go(i)})});
function copy(b){var t=b.dataset.copy;function done(){b.textContent='copied';
setTimeout(function(){b.textContent='copy'},1200)}
function old(){var a=d.createElement('textarea');a.value=t;d.body.append(a);a.select();
d.execCommand('copy');a.remove();done()}
if(navigator.clipboard)navigator.clipboard.writeText(t).then(done,old);else old()}
d.addEventListener('click',function(e){if(e.target.className==='copy')copy(e.target)});
d.getElementById('prev').onclick=function(){go(now-1,1)};
d.getElementById('next').onclick=function(){go(now+1,1)};
function twin(){plain.hidden=!plain.hidden;if(!plain.hidden)plain.scrollIntoView()}
function keys(){help.hidden=!help.hidden}
d.getElementById('twin').onclick=twin;d.getElementById('keys').onclick=keys;
var from=0,wide=1000;
function zoom(x,w){wide=Math.max(.05,Math.min(1000,w));from=Math.max(0,Math.min(1000-wide,x));
lanes.querySelectorAll('svg').forEach(function(s){s.setAttribute('viewBox',
from+' 0 '+wide+' 16')});var all=+lanes.dataset.length;
lanes.querySelectorAll('.axis span').forEach(function(s,i){
s.textContent=((from+wide*i/5)/1000*all).toPrecision(3)*1+' s'})}
function by(f,x){zoom(x-(x-from)*f,wide*f)}
d.addEventListener('keydown',function(e){if(e.ctrlKey||e.metaKey||e.altKey)return;
var k=e.key,r=rows[now],done=1;
if(k==='ArrowDown')go(now+1,1);else if(k==='ArrowUp')go(now-1,1);
else if(k==='Home')go(0,1);else if(k==='End')go(rows.length-1,1);
else if(k==='Enter'&&e.target===r){var s=r.querySelector('details');s.open=!s.open}
else if(k==='c'&&r&&r.querySelector('.copy'))copy(r.querySelector('.copy'));
else if(k==='t')twin();else if(k==='?')keys();
else if(k==='+'||k==='=')by(.5,from+wide/2);else if(k==='-')by(2,from+wide/2);
else if(k==='0')zoom(0,1000);
else if(k==='ArrowLeft'&&wide<1000)zoom(from-wide/5,wide);
else if(k==='ArrowRight'&&wide<1000)zoom(from+wide/5,wide);else done=0;
if(done)e.preventDefault()});
if(lanes){var svg=lanes.querySelector('svg');
lanes.addEventListener('wheel',function(e){if(!e.ctrlKey)return;e.preventDefault();
var b=svg.getBoundingClientRect();by(e.deltaY>0?1.25:.8,from+wide*(e.clientX-b.left)/b.width)},
{passive:false});
var held=null;lanes.addEventListener('pointerdown',function(e){held=[e.clientX,from]});
d.addEventListener('pointermove',function(e){if(held)
zoom(held[1]-(e.clientX-held[0])/svg.getBoundingClientRect().width*wide,wide)});
d.addEventListener('pointerup',function(){held=null})}
addEventListener('beforeprint',function(){d.querySelectorAll('details').forEach(
function(s){s.open=true})});go(0)})();
