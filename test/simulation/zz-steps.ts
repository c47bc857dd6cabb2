import { simulate } from './simulate.ts';
const st: Map<string, number> = new Map();
(globalThis as any).__steps = st;
for (let s=101;s<=110;s++) await simulate({ seed: s });
console.log([...st].sort((a,b)=>b[1]-a[1]).slice(0,25));
