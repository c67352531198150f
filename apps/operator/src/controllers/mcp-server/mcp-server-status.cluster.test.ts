import { configMaps, type KubeClient, type Pod, statefulSets } from '@thv/kube'
import { itNeeds } from '@thv/testkit/cluster/process/needs'
import { describeCluster } from '@thv/testkit/cluster/test-cluster'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { eventually, type OperatorUnderTest, startOperator } from '../../testing/operator-harness.ts'
import { type WorkloadSteps, workloadSteps } from '../../testing/workload-steps.ts'

const image = 'example.test/server:1'
const http = { image, transport: 'streamable-http' }
type PodStatus = NonNullable<Pod['status']>

const READY: PodStatus = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] }

/** No kubelet runs here: the test says what one would say of the pods. */
describeCluster('the status of an MCPServer', () => {
  let operator: OperatorUnderTest
  let admin: KubeClient
  let steps: WorkloadSteps

  beforeAll(async () => {
    operator = await startOperator()
    admin = operator.admin
    steps = workloadSteps(operator, 'MCPServer')
  })
  afterAll(async () => {
    await steps?.cleanUp()
    await operator?.stop()
  })

  const waiting = (name: string, reason: string, message?: string): PodStatus => ({
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'True' }],
    containerStatuses: [status(name, { waiting: { reason, ...(message !== undefined && { message }) } })],
  })
  const status = (name: string, state: object, more: object = {}) =>
    ({ name, image: '', imageID: '', ready: false, restartCount: 0, state, ...more }) as never
  const readyReason = async (name: string, reason: string) => await steps.hasReason(name, 'Ready', reason)

  test('goes from Pending to Running with its pods, and to Pending again without them [002-069]', async () => {
    await steps.create('fine', http)
    const pending = await steps.settled('fine', 'Pending')
    expect(pending).toMatchObject({ readyReplicas: 0 })
    const proxy = await steps.onePod('fine')
    await readyReason('fine', 'Unschedulable')
    const server = await steps.playRunner('fine')
    await steps.sayOfPod(server, READY)
    await steps.sayOfPod(proxy, READY)
    const running = await steps.settled('fine', 'Running')
    await eventually('it counts', async () => (await steps.get('fine')).status?.readyReplicas === 1)
    expect(running).toMatchObject({ replicas: 1, message: expect.stringContaining('1 of 1') })
    expect(await steps.condition('fine', 'Ready')).toMatchObject({ status: 'True', reason: 'Ready' })
    await steps.sayOfPod(proxy, { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] })
    await steps.settled('fine', 'Pending')
    await steps.sayOfPod(proxy, READY)
    await steps.settled('fine', 'Running')
    await admin.delete(statefulSets, steps.at('fine'))
    await steps.settled('fine', 'Pending')
  })

  test('names what is wrong with the pod of the proxy [002-070]', async () => {
    await steps.create('proxied', http)
    const pod = await steps.onePod('proxied')
    await steps.sayOfPod(pod, waiting('toolhive', 'ImagePullBackOff', 'Back-off pulling image'))
    const pulling = await readyReason('proxied', 'ImagePullBackOff')
    expect(pulling.message).toContain(pod.metadata.name)
    expect(pulling.message).toContain('toolhive-test:1')
    expect((await steps.get('proxied')).status?.phase).toBe('Pending')
    await steps.sayOfPod(pod, waiting('toolhive', 'CreateContainerConfigError', 'secret "x" not found'))
    await readyReason('proxied', 'CreateContainerConfigError')
    const crash = { restartCount: 4, lastState: { terminated: { exitCode: 3, reason: 'Error', message: 'password=hunter2' } } }
    await steps.sayOfPod(pod, {
      phase: 'Running',
      containerStatuses: [status('toolhive', { waiting: { reason: 'CrashLoopBackOff' } }, crash)],
    })
    const crashing = await readyReason('proxied', 'CrashLoopBackOff')
    expect(crashing.message).toContain('exit code 3')
    await steps.settled('proxied', 'Failed')
    const told = JSON.stringify([await steps.get('proxied'), await steps.eventsOf('proxied')])
    expect(told).not.toContain('hunter2')
  })

  test('names what is wrong with the pod of the MCP server', async () => {
    await steps.create('served', http)
    const server = await steps.playRunner('served')
    const proxy = await steps.onePod('served')
    /** The scheduler, which finds no node, writes conditions too: the last writer wins. */
    const becomes = async (reason: string, of: PodStatus) =>
      await eventually(`it says ${reason}`, async () => {
        await steps.sayOfPod(proxy, { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] })
        await steps.sayOfPod(server, of)
        const ready = await steps.condition('served', 'Ready')
        return ready?.reason === reason && ready
      })
    const pulling = await becomes('ErrImagePull', waiting('mcp', 'ErrImagePull', 'not found'))
    expect(pulling.message).toContain('MCP pod served-0')
    const crash = { restartCount: 3, lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }
    const crashing = await becomes('CrashLoopBackOff', {
      phase: 'Running',
      containerStatuses: [status('mcp', { waiting: { reason: 'CrashLoopBackOff' } }, crash)],
    })
    expect(crashing.message).toContain('out of memory')
  })

  itNeeds(['resource-quotas'], 'says why no pod can be made', async () => {
    await steps.create('refused', { ...http, resourceOverrides: { proxyDeployment: { imagePullSecrets: [{ name: 'registry' }] } } })
    await steps.onePod('refused')
    await admin.raw('POST', `/api/v1/namespaces/${operator.namespace}/resourcequotas`, {
      body: { metadata: { name: 'none' }, spec: { hard: { pods: '0' } } },
    })
    try {
      await eventually('the quota is known', async () => {
        const quota = await admin.raw('GET', `/api/v1/namespaces/${operator.namespace}/resourcequotas/none`)
        return (quota.json() as { status?: { hard?: object } }).status?.hard !== undefined
      })
      await steps.create('over-quota', http)
      const told = await readyReason('over-quota', 'PodCreationFailed')
      expect(told.message).toContain('exceeded quota')
      const hard = { pods: '0', 'count/configmaps': '0' }
      const path = `/api/v1/namespaces/${operator.namespace}/resourcequotas/none`
      await admin.raw('PATCH', path, { contentType: 'application/merge-patch+json', body: { spec: { hard } } })
      await eventually('the new limit is known', async () => {
        const { status } = (await admin.raw('GET', path)).json() as { status?: { hard?: Record<string, string>; used?: object } }
        return status?.hard?.['count/configmaps'] === '0' && JSON.stringify(status.used).includes('count/configmaps')
      })
      await steps.create('no-room', http)
      const refused = await readyReason('no-room', 'WriteRefused')
      expect(refused.message).toContain('does not let the operator write ConfigMap no-room-runconfig: exceeded quota: none')
      expect((await steps.get('no-room')).status?.phase).toBe('Failed')
    } finally {
      await admin.raw('DELETE', `/api/v1/namespaces/${operator.namespace}/resourcequotas/none`)
    }
    await steps.settled('no-room', 'Pending')
    expect((await steps.condition('no-room', 'Ready'))?.reason).not.toBe('WriteRefused')
  })

  test('serves on with its phase while an update of it is refused, and takes the update when it no longer is', async () => {
    await steps.create('kept', http)
    const proxy = await steps.onePod('kept')
    await steps.sayOfPod(await steps.playRunner('kept'), READY)
    await steps.sayOfPod(proxy, READY)
    const before = await steps.settled('kept', 'Running')
    await admin.patch(configMaps, steps.at('kept-runconfig'), { kind: 'merge', body: { immutable: true } })
    await steps.edit('kept', { proxyPort: 9009 })
    const refused = await steps.hasReason('kept', 'WriteRefused', 'WriteRefused')
    expect(refused).toMatchObject({ status: 'True', message: expect.stringContaining('ConfigMap kept-runconfig: it is immutable') })
    const { url, observedGeneration } = before
    expect((await steps.get('kept')).status).toMatchObject({ phase: 'Running', url, observedGeneration, readyReplicas: 1 })
    expect(await steps.condition('kept', 'Ready')).toMatchObject({ status: 'True', reason: 'Ready' })
    await steps.sayOfPod(proxy, { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] })
    await steps.hasReason('kept', 'Ready', 'WriteRefused')
    expect((await steps.get('kept')).status).toMatchObject({ phase: 'Failed', observedGeneration })
    await steps.sayOfPod(proxy, READY)
    await steps.hasReason('kept', 'Ready', 'Ready')
    expect((await steps.eventsOf('kept')).filter(({ reason }) => reason === 'WriteRefused').length).toBeLessThanOrEqual(1)
    await admin.delete(configMaps, steps.at('kept-runconfig'))
    const after = await steps.settled('kept')
    expect(after.url).toContain(':9009/')
    expect(await steps.condition('kept', 'WriteRefused')).toBeUndefined()
  })

  test('tells in events what has gone wrong and what is mended, each once', async () => {
    await steps.create('eventful', { ...http, toolConfigRef: { name: 'absent' } })
    await steps.settled('eventful', 'Failed')
    const reasons = async () => (await steps.eventsOf('eventful')).map(({ type, reason }) => `${type} ${reason}`).toSorted()
    await eventually('the event', async () => (await reasons()).includes('Warning ToolConfigNotFound'))
    for (const port of [9001, 9002, 9003]) {
      await steps.edit('eventful', { proxyPort: port })
      await steps.settled('eventful', 'Failed')
    }
    await steps.quiet()
    const before = await steps.eventsOf('eventful')
    expect(await reasons()).toEqual(['Warning NotReady', 'Warning ToolConfigNotFound'])
    expect(before.filter(({ series }) => series !== undefined)).toEqual([])
    expect(before[0]).toMatchObject({
      regarding: { apiVersion: 'toolhive.stacklok.dev/v1beta1', kind: 'MCPServer', name: 'eventful' },
      reportingController: 'toolhive.stacklok.dev/operator',
    })
    await steps.edit('eventful', { toolConfigRef: null })
    await steps.onePod('eventful')
    await steps.sayOfPod(await steps.playRunner('eventful'), READY)
    await steps.sayOfPod(await steps.onePod('eventful'), READY)
    await steps.settled('eventful', 'Running')
    await eventually('the good news', async () => (await reasons()).includes('Normal Ready'))
  })

  // Of this object only: others of this file go on living. `over-quota` above is written twice some time after its quota is gone, once for
  // each thing that happens to it: the ReplicaSet controller, which waits ever longer between its tries, makes the pod, and the scheduler
  // finds no node for it.
  test('writes its status once for one change [002-247]', async () => {
    await steps.create('frugal', { ...http, toolConfigRef: { name: 'absent' } })
    await steps.settled('frugal', 'Failed')
    await steps.quiet()
    operator.calls.clear()
    await steps.edit('frugal', { proxyPort: 9001 })
    await steps.settled('frugal', 'Failed')
    await steps.quiet()
    expect(operator.calls.writes.filter(({ name }) => name === 'frugal')).toEqual([
      { verb: 'patch', plural: 'mcpservers', name: 'frugal', subresource: 'status' },
    ])
  })
})
