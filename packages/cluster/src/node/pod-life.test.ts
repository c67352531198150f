import { ThvError } from '@thv/kernel/errors'
import type { Pod } from '@thv/kube/objects/builtin-kinds'
import { configMaps, pods, secrets } from '@thv/kube/objects/resource-types'
import { processStart } from '@thv/programs/process-identity'
import { afterEach, describe, expect, it } from 'vitest'
import type { ImageProgram } from './images/image-resolver.ts'
import type { NodeOptions } from './node.ts'
import { fakeImages, program } from './testing/fake-images.ts'
import { condition, eventually, isReady, NAMESPACE, type NodeFixture, QUICK, script, startFixture } from './testing/node-fixture.ts'

let fixture: NodeFixture
const start = async (options: Partial<NodeOptions> = {}) => {
  fixture = await startFixture(options)
}
afterEach(async () => {
  await fixture[Symbol.asyncDispose]()
  expect(fixture.errors).toEqual([])
})

const remove = (name: string, options = {}) => fixture.client.delete(pods, { namespace: NAMESPACE, name }, options)
const first = (pod: Pod) => pod.status?.containerStatuses?.[0]
const init = (pod: Pod, index = 0) => pod.status?.initContainerStatuses?.[index]
const FOREVER = 'while true; do sleep 1; done'

describe('ends and restarts', () => {
  it('starts a crashing container again, ever later, and says so', async () => {
    await start({ timings: { ...QUICK, backoffBase: 400, backoffMax: 400 } })
    await fixture.create('crash', script('sh', 'echo run; exit 3'))
    const waiting = await fixture.until('crash', (pod) => first(pod)?.state?.waiting?.reason === 'CrashLoopBackOff')
    expect(first(waiting)?.state?.waiting?.message).toMatch(/^back-off 400ms restarting failed container=main pod=crash_default\(/)
    expect(first(waiting)?.lastState?.terminated).toMatchObject({ exitCode: 3, reason: 'Error', containerID: expect.any(String) })
    expect(waiting.status?.phase).toBe('Running')
    expect(condition(waiting, 'Ready')).toBe('False')
    const later = await fixture.until('crash', (pod) => (first(pod)?.restartCount ?? 0) >= 2)
    expect(await fixture.logs(later, 'main', { previous: true })).toBe('run\n')
    await expect
      .poll(() => fixture.events('crash'))
      .toEqual(expect.arrayContaining([expect.stringMatching(/^BackOff: Back-off restarting failed container main/)]))
    await remove('crash')
    await fixture.untilGone('crash')
  })

  it('leaves a container that did its work alone with OnFailure, and repeats it until it has', async () => {
    await start()
    await fixture.create('job', { restartPolicy: 'OnFailure', ...script('sh', 'if [ -e done ]; then exit 0; fi; touch done; exit 1') })
    const pod = await fixture.until('job', ({ status }) => status?.phase === 'Succeeded')
    expect(first(pod)).toMatchObject({ restartCount: 1, state: { terminated: { exitCode: 0, reason: 'Completed' } } })
    expect(pod.status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'False', reason: 'PodCompleted' })
    expect(await fixture.logs(pod)).toBe('')
    await remove('job')
    await fixture.untilGone('job')
  })

  it('fails a pod that is never restarted, with the number of the signal', async () => {
    await start()
    const more = { terminationMessagePolicy: 'FallbackToLogsOnError' }
    await fixture.create('once', { restartPolicy: 'Never', ...script('sh', 'echo last words; kill -9 $$$$', more) })
    const pod = await fixture.until('once', ({ status }) => status?.phase === 'Failed')
    expect(first(pod)).toMatchObject({
      restartCount: 0,
      state: { terminated: { exitCode: 137, reason: 'Error', message: 'last words\n' } },
    })
  })

  it('says why a program cannot be started', async () => {
    await start()
    await fixture.create('none', { restartPolicy: 'Never', containers: [{ name: 'main', image: 'sh', command: ['no-such-program'] }] })
    const pod = await fixture.until('none', ({ status }) => status?.phase === 'Failed')
    expect(first(pod)?.state?.terminated).toMatchObject({
      exitCode: 128,
      reason: 'StartError',
      message: 'failed to start container "main": exec: "no-such-program": executable file not found in $PATH',
    })
  })

  it('ends a pod that is active for too long', async () => {
    await start()
    await fixture.create('slow', { activeDeadlineSeconds: 3, ...script('sh', FOREVER) })
    const pod = await fixture.until('slow', ({ status }) => status?.phase === 'Failed')
    expect(pod.status).toMatchObject({ reason: 'DeadlineExceeded' })
    expect(first(pod)?.state?.terminated?.exitCode).toBe(143)
  })

  it('gives SIGTERM first, and kills what ignores it', async () => {
    await start()
    await fixture.create('polite', script('sh', `trap 'echo bye; exit 0' TERM; echo up; ${FOREVER}`))
    await fixture.create('stubborn', { terminationGracePeriodSeconds: 1, ...script('sh', `trap '' TERM; echo $$$$; ${FOREVER}`) })
    const polite = await fixture.until('polite', isReady)
    const stubborn = await fixture.until('stubborn', isReady)
    expect(await eventually(async () => (await fixture.logs(polite)) === 'up\n' && /^\d+\n$/.test(await fixture.logs(stubborn)))).toBe(true)
    const pid = Number(await fixture.logs(stubborn))
    await Promise.all([remove('polite'), remove('stubborn')])
    await fixture.untilGone('polite')
    await fixture.untilGone('stubborn')
    expect(processStart(pid)).toBeUndefined()
  })

  it('runs preStop within the grace period', async () => {
    await start()
    const lifecycle = { preStop: { exec: { command: ['/bin/sh', '-c', 'echo stopping > $HOME/stop'] } } }
    await fixture.create('hook', script('sh', `trap 'cat $HOME/stop; sleep 0.2; exit 0' TERM; echo up; ${FOREVER}`, { lifecycle }))
    const pod = await fixture.until('hook', isReady)
    expect(await eventually(async () => (await fixture.logs(pod)) === 'up\n')).toBe(true)
    const target = { namespace: NAMESPACE, pod: 'hook', uid: pod.metadata.uid ?? '', container: 'main' }
    const attached = await fixture.node.streams.attach(target, {
      stdin: false,
      stdout: true,
      stderr: true,
      signal: AbortSignal.timeout(15_000),
    })
    await remove('hook')
    const texts: string[] = []
    for await (const { bytes } of attached.output) texts.push(Buffer.from(bytes).toString())
    expect(texts.join('')).toBe('stopping\n')
  })
})

describe('init containers', () => {
  it('run one after the other before the others', async () => {
    await start()
    await fixture.create('chain', {
      volumes: [{ name: 'shared', emptyDir: {} }],
      initContainers: ['one', 'two'].map((name) => ({
        name,
        image: 'sh',
        args: [`echo ${name} >> /data/log`],
        volumeMounts: [{ name: 'shared', mountPath: '/data' }],
      })),
      ...script('sh', `cat /data/log; ${FOREVER}`, { volumeMounts: [{ name: 'shared', mountPath: '/data' }] }),
    })
    const pod = await fixture.until('chain', isReady)
    expect(init(pod)).toMatchObject({ ready: true, state: { terminated: { exitCode: 0, reason: 'Completed' } } })
    expect(await eventually(async () => (await fixture.logs(pod)) === 'one\ntwo\n')).toBe(true)
  })

  it('keep the pod pending while they fail', async () => {
    await start()
    await fixture.create('stuck', {
      initContainers: [{ name: 'bad', image: 'sh', args: ['exit 1'] }],
      ...script('sh', FOREVER),
    })
    const pod = await fixture.until('stuck', (it) => (init(it)?.restartCount ?? 0) >= 2)
    expect(pod.status?.phase).toBe('Pending')
    expect(pod.status?.conditions?.find(({ type }) => type === 'Initialized')).toMatchObject({
      status: 'False',
      reason: 'ContainersNotInitialized',
      message: 'containers with incomplete status: [bad]',
    })
    expect(first(pod)?.state?.waiting?.reason).toBe('PodInitializing')
    await fixture.create('dead', {
      restartPolicy: 'Never',
      initContainers: [{ name: 'bad', image: 'sh', args: ['exit 1'] }],
      ...script('sh', FOREVER),
    })
    await fixture.until('dead', ({ status }) => status?.phase === 'Failed')
  })

  it('that are sidecars stay, are started again, and end last', async () => {
    await start()
    const volumeMounts = [{ name: 'shared', mountPath: '/data' }]
    await fixture.create('side', {
      restartPolicy: 'Never',
      volumes: [{ name: 'shared', emptyDir: {} }],
      initContainers: [
        {
          name: 'car',
          image: 'sh',
          args: ['if [ -e /data/once ]; then touch /data/twice; while true; do sleep 1; done; fi; touch /data/once; exit 1'],
          restartPolicy: 'Always',
          volumeMounts,
        },
      ],
      ...script('sh', 'until [ -e /data/twice ]; do sleep 0.1; done; exit 0', { volumeMounts }),
    })
    const pod = await fixture.until('side', ({ status }) => status?.phase === 'Succeeded')
    expect(init(pod)).toMatchObject({ restartCount: 1, state: { terminated: { exitCode: 143 } } })
  })
})

describe('missing objects', () => {
  it('an image is asked for again and again', async () => {
    let isThere = false
    const late = async (): Promise<ImageProgram> => {
      if (!isThere) throw new ThvError('image_unavailable', 'install it first')
      return program('late', ['/bin/sh', '-c'])
    }
    await start({ images: fakeImages({ late }) })
    await fixture.create('pull', { containers: [{ name: 'main', image: 'late', args: [FOREVER] }] })
    const waiting = await fixture.until('pull', (pod) => first(pod)?.state?.waiting?.reason === 'ImagePullBackOff')
    expect(first(waiting)?.state?.waiting?.message).toBe('Back-off pulling image "late": ErrImagePull: install it first')
    isThere = true
    await fixture.until('pull', isReady)
    await expect
      .poll(() => fixture.events('pull'))
      .toEqual(
        expect.arrayContaining([
          'Failed: Failed to pull image "late": install it first',
          'Failed: Error: ErrImagePull',
          'BackOff: Back-off pulling image "late"',
        ]),
      )
  })

  it('a pod can be deleted while its image is pulled', async () => {
    const never = () => new Promise<ImageProgram>(() => {})
    await start({
      images: {
        resolve: (_, signal) =>
          Promise.race([never(), new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))]),
      },
    })
    await fixture.create('pulling', script('sh', FOREVER))
    const pod = await fixture.until('pulling', (pod) => pod.status?.podIP !== undefined)
    expect(pod.status?.phase).toBe('Pending')
    await remove('pulling')
    await fixture.untilGone('pulling')
  })

  it('a variable keeps the container from starting until it is there', async () => {
    await start()
    const env = [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'settings', key: 'a' } } }]
    await fixture.create('config', script('sh', `echo "a is $A"; ${FOREVER}`, { env }))
    const waiting = await fixture.until('config', (pod) => first(pod)?.state?.waiting?.reason === 'CreateContainerConfigError')
    expect(first(waiting)?.state?.waiting?.message).toBe('configmap "settings" not found')
    await fixture.client.create(configMaps, { metadata: { name: 'settings', namespace: NAMESPACE }, data: { b: '1' } })
    await fixture.until('config', (pod) => first(pod)?.state?.waiting?.message === "couldn't find key a in ConfigMap default/settings")
    await fixture.client.patch(configMaps, { namespace: NAMESPACE, name: 'settings' }, { kind: 'merge', body: { data: { a: 'yes' } } })
    const pod = await fixture.until('config', isReady)
    expect(await eventually(async () => (await fixture.logs(pod)) === 'a is yes\n')).toBe(true)
  })
})

describe('the environment', () => {
  it('has what the spec says and nothing of ours', async () => {
    process.env['THV_TEST_SECRET'] = 'hunter2'
    await start()
    delete process.env['THV_TEST_SECRET']
    await fixture.client.create(configMaps, { metadata: { name: 'bulk', namespace: NAMESPACE }, data: { ONE: '1', TWO: '2' } })
    await fixture.client.create(secrets, { metadata: { name: 'token', namespace: NAMESPACE }, stringData: { key: 's3cret' } })
    const env = [
      { name: 'PLAIN', value: 'p' },
      { name: 'JOINED', value: '$(PLAIN)-$(P_ONE)-$$(PLAIN)-$(UNKNOWN)' },
      { name: 'SECRET', valueFrom: { secretKeyRef: { name: 'token', key: 'key' } } },
      { name: 'OPTIONAL', valueFrom: { secretKeyRef: { name: 'token', key: 'none', optional: true } } },
      { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
      { name: 'LABEL', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
      { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
    ]
    const envFrom = [{ prefix: 'P_', configMapRef: { name: 'bulk' } }, { secretRef: { name: 'nowhere', optional: true } }]
    const text = 'console.log(JSON.stringify(process.env)); console.log(process.argv[1]); setInterval(() => {}, 1000)'
    await fixture.create(
      'env',
      { containers: [{ name: 'main', image: 'node', args: [text, 'arg-$(PLAIN)'], env, envFrom, resources: { limits: { cpu: '250m' } } }] },
      { labels: { app: 'x' } },
    )
    const pod = await fixture.until('env', isReady)
    expect(await eventually(async () => (await fixture.logs(pod)).split('\n').length > 2)).toBe(true)
    const [line = '', arg] = (await fixture.logs(pod)).split('\n')
    const { PATH, LANG, HOME, TMPDIR, PWD, THV_CONTAINER, ...rest } = JSON.parse(line)
    expect(arg).toBe('arg-p')
    expect([HOME, TMPDIR].every((path) => path.startsWith(fixture.folder))).toBe(true)
    expect(rest).toEqual({
      THV_TEST_ADDRESS: pod.status?.podIP,
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      PLAIN: 'p',
      JOINED: 'p-1-$(PLAIN)-$(UNKNOWN)',
      SECRET: 's3cret',
      NAME: 'env',
      IP: pod.status?.podIP,
      LABEL: 'x',
      CPU: '250',
      P_ONE: '1',
      P_TWO: '2',
    })
  })
})
