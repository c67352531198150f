import { once } from 'node:events'
import { Agent, request } from 'node:https'
import { bearerToken, configMaps, createKubeClient, type KubeClient, namespaces } from '@thv/kube'
import { median } from '../figure.ts'
import type { Subject } from './subjects.ts'

/* The same load for every API server, by one client. */

const CONNECTIONS = 16
const CONTENT = { data: { text: 'x'.repeat(900) } }

export interface Loads {
  readonly writes: number
  readonly objects: number
  readonly watchers: number
  readonly fanOutWrites: number
}

export interface LoadResult {
  readonly idleMb: number
  readonly writesPerSecond: number
  readonly writeP99Ms: number
  readonly listMs: number
  readonly pagedListMs: number
  /** From the first write until every watcher had the last event. */
  readonly fanOutMs: number
  readonly loadedMb: number
}

export async function runLoad(subject: Subject, loads: Loads): Promise<LoadResult> {
  const client = createKubeClient({ server: subject.url, tls: { ca: subject.caPem }, auth: bearerToken(subject.adminToken) })
  try {
    for (const name of ['writes', 'many', 'fan']) await client.create(namespaces, { metadata: { name } })
    const idleMb = await subject.rssMb()
    await write(client, 'many', 200) // both warm
    const { perSecond, p99Ms } = await write(client, 'writes', loads.writes)
    await write(client, 'many', loads.objects, 200)
    const listMs = await repeated(() => client.list(configMaps, { namespace: 'many' }))
    const pagedListMs = await repeated(() => client.listAll(configMaps, { namespace: 'many' }))
    const fanOutMs = await fanOut(subject, client, loads)
    return { idleMb, writesPerSecond: perSecond, writeP99Ms: p99Ms, listMs, pagedListMs, fanOutMs, loadedMb: await subject.rssMb() }
  } finally {
    await client.close()
  }
}

async function write(client: KubeClient, namespace: string, count: number, from = 0): Promise<{ perSecond: number; p99Ms: number }> {
  const times: number[] = []
  const started = performance.now()
  let next = from
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      for (;;) {
        const index = next++
        if (index >= count) return
        const begun = performance.now()
        await client.create(configMaps, { metadata: { name: `item-${index}`, namespace }, ...CONTENT })
        times.push(performance.now() - begun)
      }
    }),
  )
  const seconds = (performance.now() - started) / 1000
  const sorted = times.toSorted((a, b) => a - b)
  return { perSecond: times.length / seconds, p99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN }
}

async function repeated(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let round = 0; round < 5; round++) {
    const begun = performance.now()
    await work()
    times.push(performance.now() - begun)
  }
  return median(times)
}

/** Watchers count lines only: what is measured is the server, not a parser. */
async function fanOut(subject: Subject, client: KubeClient, { watchers, fanOutWrites }: Loads): Promise<number> {
  const { metadata } = await client.list(configMaps, { namespace: 'fan' })
  const agent = new Agent({ ca: subject.caPem, maxSockets: watchers })
  const headers = { authorization: `Bearer ${subject.adminToken}`, accept: 'application/json' }
  const query = `watch=true&resourceVersion=${metadata.resourceVersion}&timeoutSeconds=300`
  const open = await Promise.all(
    Array.from({ length: watchers }, async () => {
      const call = request(`${subject.url}/api/v1/namespaces/fan/configmaps?${query}`, { agent, headers }).end()
      const [response] = (await once(call, 'response')) as [import('node:http').IncomingMessage]
      let seen = 0
      const all = new Promise<void>((resolve, reject) => {
        response.on('data', (chunk: Buffer) => {
          for (const byte of chunk) if (byte === 0x0a) seen++
          if (seen >= fanOutWrites) resolve()
        })
        response.on('error', reject)
        response.on('end', () => reject(new Error(`a watch ended after ${seen} events`)))
      })
      all.catch(() => undefined) // rejected again below, or ended by us
      return { call, all }
    }),
  )
  const started = performance.now()
  await write(client, 'fan', fanOutWrites)
  await Promise.all(open.map(({ all }) => all))
  const elapsed = performance.now() - started
  for (const { call } of open) call.destroy()
  agent.destroy()
  return elapsed
}
