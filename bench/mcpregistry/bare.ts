import { Agent, request } from 'undici'

/* The least that can be done: pages of 500, parsed, their servers in one document, which is written in parts that fit into ConfigMaps. */

interface Page {
  metadata: { continue?: string }
  items: { metadata: { name: string }; data?: Record<string, string> }[]
}

const { THV_SERVER = '', THV_TOKEN = '', THV_CA = '', THV_FROM = '', THV_INTO = '', THV_LABEL = '' } = process.env
const PART_BYTES = 900 * 1024

const dispatcher = new Agent({ allowH2: false, connect: { ca: THV_CA } })
const headers = { authorization: `Bearer ${THV_TOKEN}`, 'content-type': 'application/json' }
const started = performance.now()
/** Kept, as the operator keeps what it has read. */
const texts = new Map<string, string>()
let next = ''
do {
  const query = `limit=500&labelSelector=${encodeURIComponent(THV_LABEL)}${next && `&continue=${encodeURIComponent(next)}`}`
  const { body } = await request(`${THV_SERVER}/api/v1/namespaces/${THV_FROM}/configmaps?${query}`, { dispatcher, headers })
  const page = JSON.parse(await body.text()) as Page
  for (const { data } of page.items) {
    const { servers } = JSON.parse(data?.['registry.json'] ?? '{}') as { servers: Record<string, unknown> }
    for (const [name, server] of Object.entries(servers)) texts.set(name, JSON.stringify(server))
  }
  next = page.metadata.continue ?? ''
} while (next)

let parts = 0
let part: string[] = []
let bytes = 0
for (const [name, text] of texts) {
  if (bytes + text.length > PART_BYTES) await write()
  part.push(`${JSON.stringify(name)}:${text}`)
  bytes += text.length
}
await write()
process.stdout.write(`merged ${texts.size} in ${performance.now() - started} ms\n`)
setInterval(() => texts.size, 60_000)

async function write(): Promise<void> {
  const data = { 'registry.json': `{"servers":{${part.join()}}}` }
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `merged-${parts++}` }, data }
  const url = `${THV_SERVER}/api/v1/namespaces/${THV_INTO}/configmaps`
  const { statusCode, body } = await request(url, { method: 'POST', dispatcher, headers, body: JSON.stringify(object) })
  if (statusCode !== 201) throw new Error(`${statusCode} ${await body.text()}`)
  await body.dump()
  part = []
  bytes = 0
}
