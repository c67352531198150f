import { startGetLoad } from './registry/get-burst.ts'
import { startRegistry } from './registry/registry-subject.ts'
import { startConstant } from './registry/bare-subject.ts'
import { SAMPLE_VERSION, sampleName } from './registry/sample-registry.ts'
import fs from 'node:fs'
using load = await startGetLoad()
await using bare = await startConstant()
await using registry = await startRegistry({ count: 2000, storage: '' })
const paths = Array.from({ length: 200 }, (_, i) => `/registry/default/v0.1/servers/${encodeURIComponent(sampleName(i * 7))}/versions/${SAMPLE_VERSION}`)
const snap = (pid: number) => Object.fromEntries(fs.readdirSync(`/proc/${pid}/task`).map(t => { const f = fs.readFileSync(`/proc/${pid}/task/${t}/stat`, 'utf8'); const r = f.slice(f.lastIndexOf(')') + 2).split(' '); const sw = fs.readFileSync(`/proc/${pid}/task/${t}/status`, 'utf8'); const v = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(sw)![1]); const nv = Number(/nonvoluntary_ctxt_switches:\s+(\d+)/.exec(sw)![1]); return [t + (Number(t) === pid ? '*' : '') + f.slice(f.indexOf('('), f.lastIndexOf(')') + 1), { u: Number(r[11]), s: Number(r[12]), ns: Number(fs.readFileSync(`/proc/${pid}/task/${t}/schedstat`, 'utf8').split(' ')[0]) / 1000, v, nv }] }))
async function one(name: string, origin: string, p: string[], proc: any, ms: number) {
  const a = snap(proc.pid); const b = await load.burst({ origin, paths: p, connections: 16, durationMs: ms }, proc); const c = snap(proc.pid)
  console.log(name, b.cpuUs.toFixed(1), b.requests)
  for (const k in c) { const d = a[k] ?? { u: 0, s: 0, ns: 0, v: 0, nv: 0 }; const us = (c[k]!.ns - d.ns) / b.requests; if (us > 0.2) console.log('   ', k, us.toFixed(1), 'us; user', ((c[k]!.u - d.u) * 1e4 / b.requests).toFixed(1), 'sys', ((c[k]!.s - d.s) * 1e4 / b.requests).toFixed(1), 'vol/req', ((c[k]!.v - d.v) / b.requests).toFixed(2), 'nonvol', ((c[k]!.nv - d.nv) / b.requests).toFixed(2)) }
}
for (let i = 0; i < 5; i++) { const ms = i < 2 ? 1500 : 3000; await one('bare', bare.origin, ['/1237'], bare.process, ms); await one('ours', registry.origin, paths, registry.process, ms) }
