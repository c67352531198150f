import { Agent, request } from 'undici'
import { LAST_VERSION } from './replay-server.ts'
import { startMeasuring } from './report.ts'

/* The least that can be done: lines, parsed, into a Map. */

interface Event {
  object: { metadata: { name: string; resourceVersion: string } }
}

const dispatcher = new Agent({ allowH2: false, bodyTimeout: 0 })
const { body } = await request(`${process.env['THV_SERVER']}/api/v1/configmaps?watch=1`, { dispatcher })
const report = startMeasuring()
const cache = new Map<string, object>()
let rest: Buffer = Buffer.alloc(0)
let events = 0
reading: for await (const chunk of body) {
  const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : (chunk as Buffer)
  let start = 0
  for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, start)) {
    const { object } = JSON.parse(bytes.toString('utf8', start, end)) as Event
    cache.set(object.metadata.name, object)
    start = end + 1
    events++
    if (object.metadata.resourceVersion === LAST_VERSION) break reading
  }
  rest = bytes.subarray(start)
}
report({ events })
await dispatcher.destroy()
