import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Objects in the list, and the events that follow, round and round over them. */
export const REPLAY = { objects: 1_000, events: 40_000 }

/** An API server that knows one list and one watch, prepared beforehand: what is measured is the client alone. */
export async function startReplayServer(): Promise<{ url: string; close: () => void }> {
  const list = JSON.stringify({
    kind: 'ConfigMapList',
    apiVersion: 'v1',
    metadata: { resourceVersion: '1' },
    items: Array.from({ length: REPLAY.objects }, (_, index) => configMap(index, 1)),
  })
  const events = Array.from({ length: REPLAY.events }, (_, index) =>
    JSON.stringify({ type: 'MODIFIED', object: configMap(index % REPLAY.objects, index + 2) }),
  )
  const stream = Buffer.from(`${events.join('\n')}\n`)
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    if (new URL(request.url ?? '/', 'http://x').searchParams.get('watch')) response.write(stream)
    else response.end(list)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

export const LAST_VERSION = String(REPLAY.events + 1)

function configMap(index: number, version: number) {
  const metadata = {
    name: `object-${index}`,
    namespace: 'bench',
    uid: `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
    resourceVersion: String(version),
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { app: 'bench', number: String(index) },
    managedFields: [
      { manager: 'bench', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: { 'f:data': { 'f:text': {} } } },
    ],
  }
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { text: 'x'.repeat(600), version: String(version) } }
}
