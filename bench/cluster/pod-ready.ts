import { setTimeout as sleep } from 'node:timers/promises'
import { bearerToken, createKubeClient, type Pod, pods } from '@thv/kube'
import { median } from '../figure.ts'

const ROUNDS = 7
const LIMIT_MS = 60_000

export interface PodPlace {
  readonly url: string
  readonly caPem: string
  readonly adminToken: string
  /** A container that runs until it is stopped, and is ready when it runs. */
  readonly container: { readonly image: string; readonly command?: readonly string[]; readonly args?: readonly string[] }
}

/** From the request that creates a pod until its status says Ready, in milliseconds; the image is on the node already. */
export async function podReadyMs({ url, caPem, adminToken, container }: PodPlace): Promise<number> {
  const client = createKubeClient({ server: url, tls: { ca: caPem }, auth: bearerToken(adminToken) })
  try {
    const times: number[] = []
    for (let round = 0; round <= ROUNDS; round++) {
      const key = { namespace: 'default', name: `bench-${round}` }
      const begun = performance.now()
      await client.create(pods, {
        metadata: key,
        spec: { terminationGracePeriodSeconds: 1, containers: [{ name: 'c', imagePullPolicy: 'IfNotPresent', ...container }] },
      } as unknown as Pod)
      while (!isReady(await client.get(pods, key))) {
        if (performance.now() - begun > LIMIT_MS) throw new Error(`a pod was not ready after ${LIMIT_MS} ms`)
        await sleep(5)
      }
      if (round > 0) times.push(performance.now() - begun) // the first one warms both
      await client.delete(pods, key, { gracePeriodSeconds: 0 })
    }
    return median(times)
  } finally {
    await client.close()
  }
}

function isReady({ status }: Pod): boolean {
  const conditions = (status?.conditions ?? []) as readonly { type: string; status: string }[]
  return conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True')
}
