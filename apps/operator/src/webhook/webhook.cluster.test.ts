import { readFile } from 'node:fs/promises'
import { connect, type PeerCertificate } from 'node:tls'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { createLifecycle, type Lifecycle } from '@thv/kernel/lifecycle'
import { bearerToken, createKubeClient, type KubeClient, secrets } from '@thv/kube'
import { virtualMcpCompositeToolDefinitionType as type } from '@thv/resources/kinds/virtual-mcp-composite-tool-definition/schema'
import { virtualMcpServerType } from '@thv/resources/kinds/virtual-mcp-server/schema'
import { adminClient, installCrds } from '@thv/resources/testing/install-crds'
import { createLogger } from '@thv/telemetry/log'
import { freePort } from '@thv/testkit/cluster/process/start-on-port'
import { describeCluster, sharedCluster, testNamespace } from '@thv/testkit/cluster/test-cluster'
import { readVmcpDocument } from '@thv/vmcpconfig/read-vmcp-config'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { kubectlApply } from '../testing/kubectl.ts'
import { operatorAccount } from '../testing/operator-account.ts'
import { eventually } from '../testing/operator-harness.ts'
import { serveWebhook } from './webhook-server.ts'

/** The webhook as the chart registers it, for one namespace, with the rights that the chart gives; two replicas. */
describeCluster('the admission webhook', () => {
  let admin: KubeClient
  let own: KubeClient
  let namespace: string
  const warnings: string[] = []
  let names = 0
  /** Of an object of its own, also where a test is tried again. */
  const unique = (name: string) => `${name}-${names++}`
  const replicas: { readonly port: number; readonly lifecycle: Lifecycle }[] = []
  let ahead = 0
  const clock: Clock = {
    ...systemClock,
    now: () => Date.now() + ahead,
    sleep: (ms, signal) => systemClock.sleep(Math.min(ms, 200), signal),
  }
  const CYCLE = {
    name: 'order',
    description: 'Orders.',
    steps: [
      { id: 'a', tool: 'echo', dependsOn: ['b'] },
      { id: 'b', tool: 'echo', dependsOn: ['a'] },
    ],
  }
  const create = (name: string, spec: object) => admin.create(type, { metadata: { namespace, name }, spec } as never)
  const configuration = async () =>
    (await admin.raw('GET', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/toolhive-operator')).json() as {
      webhooks: { clientConfig: { caBundle?: string } }[]
    }

  function serve(port: number, isLeader: boolean) {
    const lifecycle = createLifecycle()
    const settings = {
      address: { host: '127.0.0.1', port },
      configuration: 'toolhive-operator',
      secret: 'toolhive-operator-webhook',
      hosts: ['127.0.0.1'],
    }
    const log = createLogger({ level: 'error' })
    serveWebhook(settings, { client: own, clock, log, lifecycle, isLeader: () => isLeader, namespace })
    replicas.push({ port, lifecycle })
  }

  /** The object of the chart, for this namespace and this process. */
  async function register() {
    const shipped = parseAllDocuments(await readFile(new URL('../../../../deploy/manifests/operator.yaml', import.meta.url), 'utf8'))
      .map((document) => document.toJS() as { kind?: string; webhooks?: Record<string, unknown>[] } | null)
      .find((object) => object?.kind === 'ValidatingWebhookConfiguration')
    for (const webhook of shipped?.webhooks ?? []) {
      webhook['clientConfig'] = { url: `https://127.0.0.1:${replicas[0]?.port}/validate` }
      webhook['namespaceSelector'] = { matchLabels: { 'kubernetes.io/metadata.name': namespace } }
    }
    await admin.raw('POST', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', { body: shipped })
  }

  beforeAll(async () => {
    const cluster = sharedCluster()
    admin = adminClient(cluster, { onWarning: (text) => warnings.push(text) })
    await installCrds(admin)
    namespace = await testNamespace('webhook')
    const token = await operatorAccount(admin, { namespace, watched: undefined })
    own = createKubeClient({ server: cluster.url, tls: { ca: cluster.caPem }, auth: bearerToken(token) })
    for (const isLeader of [true, false]) serve(await freePort(), isLeader)
    await create('before', CYCLE)
    await register()
  })
  const stopAll = async () => {
    for (const { lifecycle } of replicas) await lifecycle.shutdown('gone')
  }
  afterAll(async () => {
    await stopAll()
    await admin?.raw('DELETE', '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/toolhive-operator').catch(() => {})
    await Promise.all([own?.close(), admin?.close()])
  })

  test('[002-038] a definition with a cycle, and a server with one, are refused; sound ones are let in', async () => {
    await eventually('the API server has the caBundle', async () => (await configuration()).webhooks.every((w) => w.clientConfig.caBundle))
    const message = await eventually('the webhook is asked', async () =>
      create(unique('cycle'), CYCLE).then(
        () => false,
        (error: Error) => error.message,
      ),
    )
    expect(message).toContain('admission webhook "validate.toolhive.stacklok.dev" denied the request')
    expect(message).toContain('a → b → a')
    for (const [name, steps, why] of [
      ['unknown', [{ id: 'a', tool: 'echo', dependsOn: ['nobody'] }], 'nobody'],
      [
        'forgotten',
        [
          { id: 'a', tool: 'echo' },
          { id: 'b', tool: 'echo', arguments: { x: '{{.steps.a.output.y}}' } },
        ],
        'add it to dependsOn',
      ],
      ['type', [{ id: 'a', type: 'guess', tool: 'echo' }], 'guess'],
    ] as const)
      await expect(create(name, { ...CYCLE, steps })).rejects.toThrow(why)
    const spec = { groupRef: { name: 'g' }, incomingAuth: { type: 'anonymous' } }
    const server = (name: string, config: object) =>
      admin.create(virtualMcpServerType, { metadata: { namespace, name }, spec: { ...spec, config } } as never)
    await expect(server('bad', { compositeTools: [CYCLE] })).rejects.toThrow(/spec\.config\.compositeTools\[0\].*a → b → a/)
    const sound = { ...CYCLE, steps: [{ id: 'a', tool: 'echo' }] }
    const [name, good] = [unique('sound'), unique('good')]
    await expect(create(name, sound)).resolves.toMatchObject({ metadata: { name } })
    await expect(server(good, { compositeTools: [sound] })).resolves.toMatchObject({ metadata: { name: good } })
    await expect(admin.patch(type, { namespace, name }, { kind: 'merge', body: { spec: CYCLE } })).rejects.toThrow('a → b → a')
  })

  test('[002-182] kubectl apply of a definition with a cycle is refused with the words of vmcp validate', async () => {
    const file = {
      ...{ name: 'v', groupRef: 'g', incomingAuth: { type: 'anonymous' }, outgoingAuth: { source: 'inline' } },
      ...{ aggregation: { conflictResolution: 'prefix' }, backends: [{ name: 'a', url: 'http://127.0.0.1:1/mcp' }] },
      compositeTools: [CYCLE],
    }
    const read = readVmcpDocument(file)
    const [said] = read.ok ? [] : read.problems.map(({ message }) => message).filter((message) => message.includes('a → b → a'))
    // As a test of vmcp has it.
    expect(said).toBe('the steps wait for each other (a → b → a): remove one of these dependsOn entries')
    const name = unique('typed')
    const object = { apiVersion: `${type.group}/${type.version}`, kind: type.kind, metadata: { namespace, name }, spec: CYCLE }
    const refused = await kubectlApply(object)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('denied the request') })
    expect(refused.stderr).toContain(said)
    expect(await admin.tryGet(type, { namespace, name })).toBeUndefined()
    const sound = await kubectlApply({ ...object, spec: { ...CYCLE, steps: [{ id: 'a', tool: 'echo' }] } })
    expect(sound).toMatchObject({ code: 0, stdout: expect.stringContaining(`${name} created`) })
  })

  test('an invalid object that was stored before can be labeled, with a warning, and deleted', async () => {
    const key = { namespace, name: 'before' }
    warnings.length = 0
    await admin.patch(type, key, { kind: 'merge', body: { metadata: { labels: { team: unique('a') } } } })
    expect(warnings).toEqual([expect.stringContaining('wait for each other')])
    await admin.delete(type, key)
    expect(await admin.tryGet(type, key)).toBeUndefined()
  })

  test('a certificate that is due is renewed by the leader, and shown by every replica', async () => {
    const fingerprints = async () => await Promise.all(replicas.map(async ({ port }) => (await certificateAt(port))?.fingerprint256))
    const before = await eventually('both show the first certificate', async () => {
      const [leader, follower] = await fingerprints()
      return leader !== undefined && leader === follower && leader
    })
    ahead += 61 * 86_400_000
    await eventually('both show another one', async () => {
      const [leader, follower] = await fingerprints()
      return leader !== before && leader === follower
    })
    const { data, type: secretType } = await admin.get(secrets, { namespace, name: 'toolhive-operator-webhook' })
    expect(secretType).toBe('kubernetes.io/tls')
    expect(Object.keys(data ?? {}).toSorted()).toEqual(['ca.crt', 'ca.key', 'tls.crt', 'tls.key'])
  })

  test('while no operator answers everything is let in', async () => {
    await stopAll()
    const name = unique('unseen')
    await expect(create(name, CYCLE)).resolves.toMatchObject({ metadata: { name } })
  })

  test('while its certificate has expired by the clock everything is let in; it is renewed, and refusals work again', async () => {
    const port = replicas[0]?.port ?? 0
    // The API server asks at this port, which an earlier try may still hold.
    await stopAll()
    const secret = { namespace, name: 'toolhive-operator-webhook' }
    if ((await admin.tryGet(secrets, secret)) !== undefined) await admin.delete(secrets, secret)
    const before = (await configuration()).webhooks[0]?.clientConfig.caBundle
    // The operator made it 200 days ago, and has not looked since.
    ahead = -200 * 86_400_000
    serve(port, true)
    const expired = await eventually('the expired certificate is shown', async () => {
      const shown = await certificateAt(port)
      return shown !== undefined && Date.parse(shown.valid_to) < Date.now() && shown.fingerprint256
    })
    const trusted = await eventually('its authority is trusted', async () => {
      const { caBundle } = (await configuration()).webhooks[0]?.clientConfig ?? {}
      return caBundle !== before && caBundle
    })
    const name = unique('unseen')
    await expect(create(name, CYCLE)).resolves.toMatchObject({ metadata: { name } })
    expect((await certificateAt(port))?.fingerprint256).toBe(expired)
    ahead = 0
    const message = await eventually('the webhook is asked again', async () =>
      create(unique('expired'), CYCLE).then(
        () => false,
        (error: Error) => error.message,
      ),
    )
    expect(message).toContain('denied the request')
    expect((await certificateAt(port))?.fingerprint256).not.toBe(expired)
    expect((await configuration()).webhooks[0]?.clientConfig.caBundle).toBe(trusted)
  })
})

/** Undefined while nothing listens there. */
function certificateAt(port: number): Promise<PeerCertificate | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate())
      socket.destroy()
    })
    socket.on('error', () => resolve(undefined))
  })
}
