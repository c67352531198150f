import { Agent, request } from 'undici'
import { startMeasuring } from './report.ts'

/* The least that can be done: pages of 500, parsed, into a Map. */

interface Page {
  metadata: { continue?: string }
  items: { metadata: { name: string } }[]
}

const { THV_SERVER = '', THV_TOKEN = '', THV_CA = '', THV_NAMESPACE = '' } = process.env
const dispatcher = new Agent({ allowH2: false, connect: { ca: THV_CA } })
const report = startMeasuring()
const cache = new Map<string, object>()
let next = ''
do {
  const url = `${THV_SERVER}/api/v1/namespaces/${THV_NAMESPACE}/configmaps?limit=500${next && `&continue=${encodeURIComponent(next)}`}`
  const { body } = await request(url, { dispatcher, headers: { authorization: `Bearer ${THV_TOKEN}` } })
  const page = JSON.parse(await body.text()) as Page
  for (const item of page.items) cache.set(item.metadata.name, item)
  next = page.metadata.continue ?? ''
} while (next)
report({ objects: cache.size })
await dispatcher.close()
