import { releaseMemoryWhenIdle } from '@thv/kernel/idle-memory'
import { Agent, request } from 'undici'

/* The least that can be done: every kind that the export reads, in pages of 500, parsed and kept. */

interface Page {
  metadata: { continue?: string }
  items: { metadata: { namespace: string; name: string } }[]
}

const PATHS = [
  'apis/toolhive.stacklok.dev/v1beta1/mcpservers',
  'apis/toolhive.stacklok.dev/v1beta1/mcpremoteproxies',
  'apis/toolhive.stacklok.dev/v1beta1/virtualmcpservers',
  'apis/gateway.networking.k8s.io/v1/httproutes',
  'apis/gateway.networking.k8s.io/v1/gateways',
  'apis/gateway.networking.k8s.io/v1/referencegrants',
  'api/v1/services',
]
const { THV_SERVER = '', THV_TOKEN = '', THV_CA = '' } = process.env
const dispatcher = new Agent({ allowH2: false, connect: { ca: THV_CA } })
const headers = { authorization: `Bearer ${THV_TOKEN}` }
const started = performance.now()
const kept = new Map<string, object>()
await Promise.all(PATHS.map(list))
process.stdout.write(`listed ${kept.size} in ${performance.now() - started} ms\n`)
setInterval(() => kept.size, 60_000)
if (process.env['THV_RELEASE'] === '1')
  releaseMemoryWhenIdle({ signal: new AbortController().signal, onCollected: () => process.stdout.write('collected\n') })

async function list(path: string): Promise<void> {
  let next = ''
  do {
    const query = `limit=500${next && `&continue=${encodeURIComponent(next)}`}`
    const { body, statusCode } = await request(`${THV_SERVER}/${path}?${query}`, { dispatcher, headers })
    const text = await body.text()
    if (statusCode !== 200) throw new Error(`${path}: ${statusCode} ${text}`)
    const page = JSON.parse(text) as Page
    for (const item of page.items) kept.set(`${path}/${item.metadata.namespace}/${item.metadata.name}`, item)
    next = page.metadata.continue ?? ''
  } while (next)
}
