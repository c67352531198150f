import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { configMaps, createKubeClient, type KubeClient, loadKubeconfig, namespaces, serviceAccounts } from '@thv/kube'
import { fixtureImage } from '@thv/testkit/image/fixture-image'
import { expect } from 'vitest'
import { ensureBundle } from '../../scripts/bundle.mjs'
import { openWorld, type World } from '../e2e/stories/world.ts'
import { type DataFolder, dataFolder, type PlatformProcess } from './platform-process.ts'

/* A platform that knows the fixture server as an image, and the ways to it. */

/** A data folder whose platform runs the fixture for its image. */
export async function fixtureFolder(): Promise<DataFolder> {
  const folder = await dataFolder()
  await knowFixture(folder.path)
  return folder
}

export async function knowFixture(path: string): Promise<void> {
  const command = [process.execPath, await ensureBundle('packages/testkit/src/mcp/fixture-image-main.ts')]
  await writeFile(join(path, 'images.yaml'), JSON.stringify({ images: [{ match: fixtureImage, command }] }))
}

/** Only reads are tried again by it: of a write it says what the server said. */
export async function clientOf({ kubeconfigPath }: PlatformProcess): Promise<KubeClient> {
  return createKubeClient(await loadKubeconfig({ path: kubeconfigPath }))
}

/** A namespace and what stories do in it. The namespace is made when it is not there. */
export async function worldOf({ kubeconfigPath }: PlatformProcess, namespace: string): Promise<World> {
  const world = await openWorld({
    expect,
    kubeconfigPath,
    namespace,
    operator: { namespace: 'toolhive-system', deployment: 'toolhive-operator' },
    images: { apps: 'toolhive-ts:0.1.0', fixture: fixtureImage, sameFixture: fixtureImage },
    hostAddress: '127.0.0.1',
    namesInUrls: false,
    hasWebhook: false,
    reach: ({ spec }, port) => `${spec?.clusterIP}:${port}`,
  })
  await ensureNamespace(world.client, namespace)
  return world
}

/** With what every namespace gets a moment later. The client sends a write once, and a busy machine may be slow to take a connection. */
export async function ensureNamespace(client: KubeClient, name: string): Promise<void> {
  await eventually(
    `there is a namespace ${name}`,
    async () => (await client.tryGet(namespaces, { name })) ?? (await client.create(namespaces, { metadata: { name } })),
  )
  await eventually('it has its account', () => client.tryGet(serviceAccounts, { namespace: name, name: 'default' }))
  await eventually('it has its certificates', () => client.tryGet(configMaps, { namespace: name, name: 'kube-root-ca.crt' }))
}

export interface PlatformAccess {
  readonly url: string
  readonly caPem: string
  readonly adminToken: string
}

/** For requests that our own client would not send. */
export async function accessTo({ kubeconfigPath }: PlatformProcess): Promise<PlatformAccess> {
  const config = JSON.parse(await readFile(kubeconfigPath, 'utf8')) as {
    clusters: { cluster: { server: string; 'certificate-authority-data': string } }[]
    users: { user: { token: string } }[]
  }
  const [cluster, user] = [config.clusters[0]?.cluster, config.users[0]?.user]
  if (cluster === undefined || user === undefined) throw new Error(`${kubeconfigPath} names no cluster`)
  return { url: cluster.server, caPem: Buffer.from(cluster['certificate-authority-data'], 'base64').toString(), adminToken: user.token }
}

/** Waits until `check` gives something true; otherwise fails with `what` and what it threw last. */
export async function eventually<T>(what: string, check: () => T | Promise<T>, limitMs = 120_000): Promise<NonNullable<T>> {
  const deadline = performance.now() + limitMs
  for (;;) {
    let last: unknown
    try {
      const result = await check()
      if (result) return result
    } catch (error) {
      last = error
    }
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`, { cause: last })
    await sleep(50)
  }
}
