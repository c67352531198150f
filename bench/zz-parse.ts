import { parseRegistryText } from '@thv/catalog/sources/parse-registry-text'
import { writeSampleRegistry } from './registry/sample-registry.ts'
import fs from 'node:fs'
await writeSampleRegistry('/tmp/zz-sample.json', 10000)
const b = fs.readFileSync('/tmp/zz-sample.json')
for (let i = 0; i < 8; i++) { const c = process.cpuUsage(); const r = parseRegistryText(b); const d = process.cpuUsage(c); console.log(r.entries.length, r.dropped, ((d.user + d.system) / 1000).toFixed(0), 'ms cpu') }
