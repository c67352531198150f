import { startConstant } from './registry/bare-subject.ts'
import { startGetLoad } from './registry/get-burst.ts'
import { startRegistry } from './registry/registry-subject.ts'
import { SAMPLE_VERSION, sampleName } from './registry/sample-registry.ts'
const rounds = Number(process.argv[2] ?? 15)
const ms = Number(process.argv[3] ?? 250)
await using bare = await startConstant()
using load = await startGetLoad()
await using registry = await startRegistry({ count: 2000, storage: '' })
const B='/registry/default/v0.1'
const first = (await (await fetch(`${registry.origin}${B}/servers?limit=30`)).json()) as any
const c = JSON.parse(Buffer.from(first.metadata.nextCursor,'base64url').toString())
const some = (n: number) => Array.from({ length: n }, (_, i) => (i * 7919 + 13) % 2000)
const cur = some(50).map(n => Buffer.from(JSON.stringify({ ...c, name: sampleName(n), version: SAMPLE_VERSION })).toString('base64url'))
const kinds: Record<string, string[]> = {
  list: cur.map(x => `${B}/servers?limit=30&cursor=${x}`),
  first100: [`${B}/servers?limit=100`],
  get: some(200).map(n => `${B}/servers/${encodeURIComponent(sampleName(n))}/versions/${SAMPLE_VERSION}`),
}
const size: Record<string, number> = {}
for (const k in kinds) { let s = 0; for (const p of kinds[k]!.slice(0, 20)) s += (await (await fetch(registry.origin + p)).arrayBuffer()).byteLength; size[k] = Math.round(s / Math.min(20, kinds[k]!.length)) }
const med = (a: number[]) => a.toSorted((x, y) => x - y)[a.length >> 1]!
const q = (a: number[], f: number) => a.toSorted((x, y) => x - y)[Math.floor(a.length * f)]!
const only = process.argv[4]?.split(',')
for (const k in kinds) {
  if (only && !only.includes(k)) continue
  const a: number[] = [], b: number[] = [], r: number[] = []
  for (let i = -4; i < rounds; i++) {
    const base = (await load.burst({ origin: bare.origin, paths: [`/${size[k]}`], connections: 16, durationMs: ms }, bare.process)).cpuUs
    const ours = (await load.burst({ origin: registry.origin, paths: kinds[k]!, connections: 16, durationMs: ms }, registry.process)).cpuUs
    if (i < 0) continue
    a.push(base); b.push(ours); r.push(ours / base)
  }
  console.log(k.padEnd(9), size[k], 'bytes; bare min/q1/med', [Math.min(...a), q(a, .25), med(a)].map(x => x.toFixed(1)).join(' '), 'ours', [Math.min(...b), q(b, .25), med(b)].map(x => x.toFixed(1)).join(' '), 'ratio min/min', (Math.min(...b) / Math.min(...a)).toFixed(2), 'q1', (q(b, .25) / q(a, .25)).toFixed(2), 'med of ratios', med(r).toFixed(2))
}
