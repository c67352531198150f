import { startGetLoad } from './registry/get-burst.ts'
import { startRegistry } from './registry/registry-subject.ts'
import { startConstant } from './registry/bare-subject.ts'
import { SAMPLE_VERSION, sampleName } from './registry/sample-registry.ts'
using load = await startGetLoad()
const out: any = {}
{
await using bare = await startConstant()
await using registry = await startRegistry({ count: 1000, storage: '' })
const paths = Array.from({ length: 200 }, (_, i) => `/registry/default/v0.1/servers/${encodeURIComponent(sampleName(i * 5))}/versions/${SAMPLE_VERSION}`)
let rb = 0, rr = 0
for (let i = 0; i < 12; i++) {
 const b = await load.burst({ origin: bare.origin, paths: ['/1237'], connections: 16, durationMs: 1000 }, bare.process); rb += b.requests
 const r = await load.burst({ origin: registry.origin, paths, connections: 16, durationMs: 1000 }, registry.process); rr += r.requests
 console.log(b.cpuUs.toFixed(1), r.cpuUs.toFixed(1)) }
 out[bare.process.pid] = rb; out[registry.process.pid] = rr
}
console.log(JSON.stringify(out))
