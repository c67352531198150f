import { chmodSync, lstatSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canBecomeOthers, OTHER_USER, talkAs } from '@thv/http/testing/other-user'
import type { Deployment, Pod, Service } from '@thv/kube'
import { bearerToken, configMaps, createKubeClient, deployments, type KubeClient, namespaces, pods, services } from '@thv/kube'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Platform, type PlatformOptions, startPlatform } from './platform.ts'

const OWN = 'example-own'
/** Listens on the given port, on all addresses: the platform turns that into the pod's own. */
const web = (answer: string) =>
  `require('node:http').createServer((_, response) => response.end(${answer} + '')).listen(Number(process.env.PORT))`

let folder: string
let platform: Platform | undefined
const errors: string[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-platform-'))
  errors.length = 0
})
afterEach(async () => {
  await platform?.stop()
  platform = undefined
  rmSync(folder, { recursive: true, force: true })
})

async function start(options: Partial<PlatformOptions> = {}): Promise<Platform> {
  const quiet = () => undefined
  platform = await startPlatform({
    folder,
    ownImages: [{ repository: OWN, programs: { node: [process.execPath] }, main: 'node' }],
    manifests: [{ type: namespaces, object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'given' } } }],
    env: { PATH: process.env['PATH'] },
    log: { debug: quiet, info: quiet, warn: quiet, error: (message) => errors.push(message) },
    ...options,
  })
  return platform
}

function deployment(replicas: number, answer = 'process.pid'): Deployment {
  const labels = { app: 'web' }
  const probe = { httpGet: { path: '/', port: 8123 }, periodSeconds: 1 }
  const container = {
    name: 'web',
    image: `${OWN}:1`,
    args: ['-e', web(answer)],
    env: [{ name: 'PORT', value: '8123' }],
    readinessProbe: probe,
  }
  return {
    metadata: { name: 'web', namespace: 'given' },
    spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [container] } } },
  }
}

const service: Service = {
  metadata: { name: 'web', namespace: 'given' },
  spec: { selector: { app: 'web' }, ports: [{ port: 8080, targetPort: 8123 }] },
}

const within = <T>(look: () => T | Promise<T>) => vi.waitFor(look, { timeout: 15_000, interval: 50 })

/** Which processes answer at the Service's address. */
async function answering(client: KubeClient): Promise<Set<string>> {
  const { spec } = await client.get(services, { namespace: 'given', name: 'web' })
  const calls = Array.from({ length: 12 }, async () => {
    const response = await fetch(`http://${spec?.clusterIP}:8080/`, { headers: { connection: 'close' } })
    return await response.text()
  })
  return new Set(await Promise.all(calls))
}

async function podsOf(client: KubeClient): Promise<Pod[]> {
  return (await client.list(pods, { namespace: 'given' })).items
}

describe('the platform', () => {
  it('runs pods as processes behind a Service, and takes them up again after a stop', async () => {
    const { client } = await start()
    await client.create(deployments, deployment(2))
    await client.create(services, service)
    const first = await within(async () => {
      const found = await answering(client)
      expect(found.size).toBe(2)
      return found
    })
    const before = (await podsOf(client)).map(({ metadata }) => metadata.uid).sort()
    const address = (await client.get(services, { namespace: 'given', name: 'web' })).spec?.clusterIP

    const report = await platform?.stop()
    expect(report?.hooks.filter(({ outcome }) => outcome !== 'done')).toEqual([])
    for (const pid of first) expect(() => process.kill(Number(pid), 0)).toThrow('ESRCH')

    const again = await start()
    const second = await within(async () => {
      const found = await answering(again.client)
      expect(found.size).toBe(2)
      return found
    })
    expect([...second].filter((pid) => first.has(pid))).toEqual([])
    expect((await podsOf(again.client)).map(({ metadata }) => metadata.uid).sort()).toEqual(before)
    expect((await again.client.get(services, { namespace: 'given', name: 'web' })).spec?.clusterIP).toBe(address)

    await again.client.delete(deployments, { namespace: 'given', name: 'web' }, { propagationPolicy: 'Background' })
    await within(async () => expect(await podsOf(again.client)).toEqual([]))
    for (const pid of second) expect(() => process.kill(Number(pid), 0)).toThrow('ESRCH')
    expect(errors).toEqual([])
  })

  it('applies what it is given once, and again when it changed', async () => {
    const given = (text: string) => [
      { type: configMaps, object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'default' }, data: { text } } },
    ]
    const key = { namespace: 'default', name: 'a' }
    const { client } = await start({ manifests: given('one') })
    await client.patch(configMaps, key, { kind: 'merge', body: { data: { text: 'by hand' } } })
    await platform?.stop()
    const second = await start({ manifests: given('one') })
    expect((await second.client.get(configMaps, key)).data).toEqual({ text: 'by hand' })
    await platform?.stop()
    const third = await start({ manifests: given('two') })
    expect((await third.client.get(configMaps, key)).data).toEqual({ text: 'two' })
  })

  it.skipIf(!canBecomeOthers)(
    'lets only its own user connect to a Service, and tells its pods',
    async () => {
      const text = 'GET / HTTP/1.0\r\n\r\n'
      const ask = async (client: KubeClient, uid: number) => {
        const { spec } = await client.get(services, { namespace: 'given', name: 'web' })
        return await talkAs(uid, { host: spec?.clusterIP ?? '', port: 8080, text })
      }
      const { client, peerEnv } = await start()
      expect(peerEnv).toEqual({ THV_PEER_USER: String(process.getuid?.()) })
      await client.create(deployments, deployment(1, 'process.env.THV_PEER_USER'))
      await client.create(services, service)
      await within(async () => expect(await ask(client, 0)).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\n0$/))
      expect(await ask(client, OTHER_USER)).toBe('')
      await platform?.stop()

      const shared = await start({ shared: true })
      expect(shared.peerEnv).toEqual({})
      await within(async () => expect(await ask(shared.client, OTHER_USER)).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nundefined$/))
    },
    60_000,
  )

  it('has a folder for itself', async () => {
    await start()
    const first = platform
    await expect(start()).rejects.toMatchObject({ code: expect.stringMatching(/^(network_unavailable|data_folder_in_use)$/) })
    platform = first
    // The one that was there is not disturbed.
    await first?.client.list(pods)
  })

  it('lets no other user write into its folder, nor read its secrets', async () => {
    chmodSync(folder, 0o777)
    await start()
    expect(statSync(folder).mode & 0o022).toBe(0)
    const open = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => {
      const { mode } = lstatSync(join(folder, name))
      return !name.startsWith('packages') && (mode & 0o170000) !== 0o120000 && (mode & 0o077) !== 0
    })
    expect(open).toEqual([])
  })

  it('is the same server to its clients after a restart', async () => {
    const { server } = await start()
    await platform?.stop()
    await start()
    const client = createKubeClient({ server: server.url, tls: { ca: server.caPem }, auth: bearerToken(server.adminToken) })
    expect((await client.list(pods)).items).toBeInstanceOf(Array)
    await client.close()
  })
})
