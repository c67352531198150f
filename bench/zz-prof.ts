import { startGetLoad } from './registry/get-burst.ts'
import { startRegistry } from './registry/registry-subject.ts'
import { SAMPLE_VERSION, sampleName } from './registry/sample-registry.ts'
using load = await startGetLoad()
{
await using registry = await startRegistry({ count: 1000, storage: '' })
const paths = Array.from({ length: 200 }, (_, i) => `/registry/default/v0.1/servers/${encodeURIComponent(sampleName(i * 5))}/versions/${SAMPLE_VERSION}`)
for (let i = 0; i < 5; i++) console.log((await load.burst({ origin: registry.origin, paths, connections: 16, durationMs: 3000 }, registry.process)).cpuUs)
}
