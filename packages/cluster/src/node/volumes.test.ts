import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { configMaps, pods, secrets, serviceAccounts } from '@thv/kube/objects/resource-types'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { eventually, isReady, NAMESPACE, type NodeFixture, script, startFixture } from './testing/node-fixture.ts'

let fixture: NodeFixture
beforeEach(async () => {
  fixture = await startFixture()
})
afterEach(async () => {
  await fixture[Symbol.asyncDispose]()
  expect(fixture.errors).toEqual([])
})

const FOREVER = 'while true; do sleep 1; done'
const named = (name: string) => ({ name, namespace: NAMESPACE })
const root = (uid: string | undefined, path: string) => join(fixture.folder, 'pods', uid ?? '', 'root', 'main', path)
const mounting = (volume: object, more: object = {}, text = FOREVER) => ({
  volumes: [{ name: 'vol', ...volume }],
  ...script('sh', text, { volumeMounts: [{ name: 'vol', mountPath: '/etc/app', ...more }] }),
})
const failure = async (name: string, text: RegExp) => {
  expect(await eventually(async () => (await fixture.events(name)).some((event) => /^FailedMount: /.test(event) && text.test(event)))).toBe(
    true,
  )
}

describe('volumes', () => {
  it('of a ConfigMap are found through the mount path, and follow it at one moment', async () => {
    await fixture.client.create(configMaps, { metadata: named('app'), data: { a: '1', gone: 'x' }, binaryData: { bin: '/wA=' } })
    await fixture.create('cm', mounting({ configMap: { name: 'app' } }, {}, `cat /etc/app/a --; ${FOREVER}`))
    const { metadata } = await fixture.until('cm', isReady)
    const file = (name: string) => root(metadata.uid, `/etc/app/${name}`)
    expect(readFileSync(file('a'), 'utf8')).toBe('1')
    expect(readFileSync(file('bin'))).toEqual(Buffer.from([255, 0]))
    expect(readlinkSync(file('a'))).toBe('..data/a')
    const before = readlinkSync(file('..data'))
    await fixture.client.update(configMaps, { metadata: named('app'), data: { a: '2', fresh: 'y' } })
    expect(await eventually(() => existsSync(file('fresh')))).toBe(true)
    expect([readFileSync(file('a'), 'utf8'), existsSync(file('gone')), readlinkSync(file('..data')) === before]).toEqual([
      '2',
      false,
      false,
    ])
    expect(await eventually(() => !existsSync(join(file('..data'), '..', before)))).toBe(true)
    await fixture.client.delete(configMaps, named('app'))
    await fixture.client.create(configMaps, { metadata: named('other') })
    expect(readFileSync(file('a'), 'utf8')).toBe('2')
    await failure('cm', /configmap "app" not found/)
  })

  it('show an object that appears while another volume is still being read', async () => {
    const { tryGet } = fixture.client
    await fixture.client.create(configMaps, { metadata: named('second'), data: { b: '2' } })
    fixture.client.tryGet = async (type, key, options) => {
      const found = await tryGet(type, key, options)
      if (key.name === 'second' && (await tryGet(configMaps, named('first'))) === undefined) {
        await fixture.client.create(configMaps, { metadata: named('first'), data: { a: '1' } })
        await delay(300) // the node hears of it now, after it has found the first volume empty
      }
      return found
    }
    const volumes = [
      { name: 'first', configMap: { name: 'first', optional: true } },
      { name: 'second', configMap: { name: 'second' } },
    ]
    const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/etc/${name}` }))
    await fixture.create('late', { volumes, ...script('sh', FOREVER, { volumeMounts }) })
    const { metadata } = await fixture.until('late', isReady)
    expect(await eventually(() => existsSync(root(metadata.uid, '/etc/first/a')))).toBe(true)
  })

  it('of a Secret are for the owner alone, with chosen keys', async () => {
    await fixture.client.create(secrets, { metadata: named('keys'), stringData: { one: 'k1', two: 'k2' } })
    const secret = { secretName: 'keys', items: [{ key: 'one', path: 'deep/key' }], defaultMode: 0o666 }
    await fixture.create('secret', mounting({ secret }, { subPath: 'deep' }))
    const { metadata } = await fixture.until('secret', isReady)
    expect(readFileSync(root(metadata.uid, '/etc/app/key'), 'utf8')).toBe('k1')
    expect(statSync(root(metadata.uid, '/etc/app/key')).mode & 0o777).toBe(0o600)
    expect(existsSync(root(metadata.uid, '/etc/app/two'))).toBe(false)
  })

  it('are put together from several sources, with a token that is bound to the pod', async () => {
    await fixture.client.create(configMaps, { metadata: named('ca'), data: { 'ca.crt': 'PEM' } })
    const sources = [
      { serviceAccountToken: { path: 'token', expirationSeconds: 3607 } },
      { configMap: { name: 'ca', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      { secret: { name: 'nowhere', optional: true } },
      {
        downwardAPI: {
          items: [
            { path: 'namespace', fieldRef: { fieldPath: 'metadata.namespace' } },
            { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
          ],
        },
      },
    ]
    await fixture.create('proj', mounting({ projected: { sources } }), { labels: { app: 'x' } })
    const { metadata } = await fixture.until('proj', isReady)
    const read = (name: string) => readFileSync(root(metadata.uid, `/etc/app/${name}`), 'utf8')
    expect([read('ca.crt'), read('namespace'), read('labels')]).toEqual(['PEM', 'default', 'app="x"'])
    const claims = JSON.parse(Buffer.from(read('token').split('.')[1] ?? '', 'base64url').toString())
    expect(claims).toMatchObject({
      sub: 'system:serviceaccount:default:default',
      'kubernetes.io': { pod: { name: 'proj', uid: metadata.uid } },
    })
    await fixture.client.patch(pods, named('proj'), { kind: 'merge', body: { metadata: { labels: { app: 'y', b: 'c' } } } })
    expect(await eventually(() => read('labels') === 'app="y"\nb="c"')).toBe(true)
  })

  it('wait for what is not there, and say so', async () => {
    await fixture.create('late', mounting({ configMap: { name: 'late' } }))
    await failure('late', /MountVolume\.SetUp failed for volume "vol" : configmap "late" not found/)
    expect((await fixture.get('late'))?.status?.containerStatuses?.[0]?.state?.waiting?.reason).toBe('ContainerCreating')
    await fixture.client.create(configMaps, { metadata: named('late'), data: { a: '1' } })
    await fixture.until('late', isReady)
  })

  it('never lead out of the pod', async () => {
    await fixture.client.create(configMaps, { metadata: named('map'), data: { key: '1' } })
    // The API server refuses such paths; whatever it lets through must not be believed.
    const put = (name: string, path: string) =>
      fixture.create(name, mounting({ configMap: { name: 'map', items: [{ key: 'key', path }] } })).then(
        () => failure(name, /must be a relative path|must not/),
        (error: unknown) => expect(String(error)).toMatch(/must not|relative/),
      )
    await put('up', '../../up')
    await put('abs', '/tmp/abs')
    await fixture.create('work', script('sh', `pwd; ${FOREVER}`, { workingDir: '/../../../../../work' }))
    const work = await fixture.until('work', isReady)
    expect(await eventually(async () => (await fixture.logs(work)) === `${root(work.metadata.uid, '/work')}\n`)).toBe(true)
    const link = mounting({ emptyDir: {} }, {}, 'ln -s /etc /etc/app/out')
    const second = { name: 'second', image: 'sh', args: [FOREVER], volumeMounts: [{ name: 'vol', mountPath: '/x', subPath: 'out' }] }
    await fixture.create('link', { volumes: link.volumes, initContainers: link.containers, containers: [second] })
    const pod = await fixture.until(
      'link',
      ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
    )
    expect(pod.status?.containerStatuses?.[0]?.state?.waiting?.message).toMatch(/leads out of the volume/)
  })

  it('of other kinds are refused with a clear message, host paths are there', async () => {
    await fixture.create('nfs', mounting({ nfs: { server: 'x', path: '/' } }))
    await failure('nfs', /this node cannot mount volumes of type nfs/)
    await fixture.create('proc', mounting({ hostPath: { path: '/proc/none/such', type: 'DirectoryOrCreate' } }))
    await failure('proc', /ENOENT/)
    const file = join(fixture.folder, 'host.txt')
    writeFileSync(file, 'host')
    await fixture.create('host', mounting({ hostPath: { path: fixture.folder, type: 'Directory' } }))
    const { metadata } = await fixture.until('host', isReady)
    expect(readFileSync(root(metadata.uid, '/etc/app/host.txt'), 'utf8')).toBe('host')
    await fixture.client.delete(pods, named('host'))
    await fixture.untilGone('host')
    expect(readFileSync(file, 'utf8')).toBe('host')
  })

  it('never change a host path, however deep a mount lies in it', async () => {
    const host = join(fixture.folder, 'host')
    mkdirSync(join(host, 'deep'), { recursive: true })
    const mounts = { outer: '/data', host: '/data/host', inner: '/data/host/deep' }
    await fixture.create('nested', {
      volumes: [
        { name: 'outer', emptyDir: {} },
        { name: 'host', hostPath: { path: host } },
        { name: 'inner', emptyDir: {} },
      ],
      ...script('sh', FOREVER, { volumeMounts: Object.entries(mounts).map(([name, mountPath]) => ({ name, mountPath })) }),
    })
    const pod = await fixture.until(
      'nested',
      ({ status }) => status?.containerStatuses?.[0]?.state?.waiting?.reason === 'CreateContainerConfigError',
    )
    expect(pod.status?.containerStatuses?.[0]?.state?.waiting?.message).toMatch(/\/data\/host\/deep lies below the host path/)
    expect(lstatSync(join(host, 'deep')).isDirectory()).toBe(true)
  })

  it('are mounted from the outside in, however their paths are written', async () => {
    const mounts = { inner: '/data/x', outer: '/data//////' }
    const volumeMounts = Object.entries(mounts).map(([name, mountPath]) => ({ name, mountPath }))
    const volumes = Object.keys(mounts).map((name) => ({ name, emptyDir: {} }))
    await fixture.create('slashes', { volumes, ...script('sh', FOREVER, { volumeMounts }) })
    const pod = await fixture.until('slashes', isReady)
    expect(readdirSync(root(pod.metadata.uid, '/data'))).toEqual(['x'])
  })

  it('are found in arguments and variables too', async () => {
    const env = [{ name: 'FILE', value: '/etc/app/a' }]
    const text = 'echo "$FILE|$0|$1"; while true; do sleep 1; done'
    await fixture.create('paths', {
      volumes: [{ name: 'vol', emptyDir: {} }],
      containers: [
        {
          name: 'main',
          image: 'sh',
          args: [text, '--conf=/etc/app/b', '/etc/application'],
          env,
          volumeMounts: [{ name: 'vol', mountPath: '/etc/app/' }],
        },
      ],
    })
    const pod = await fixture.until('paths', isReady)
    const line = `${root(pod.metadata.uid, '/etc/app/a')}|--conf=${root(pod.metadata.uid, '/etc/app/b')}|/etc/application\n`
    expect(await eventually(async () => (await fixture.logs(pod)) === line)).toBe(true)
  })

  it('need an account for a token', async () => {
    await fixture.client.create(serviceAccounts, { metadata: named('soon-gone') })
    const volumes = [
      { name: 'first', configMap: { name: 'late' } },
      { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
    ]
    await fixture.create('account', { serviceAccountName: 'soon-gone', volumes, ...script('sh', FOREVER) })
    await failure('account', /configmap "late" not found/)
    await fixture.client.delete(serviceAccounts, named('soon-gone'))
    await fixture.client.create(configMaps, { metadata: named('late') })
    await failure('account', /volume "token" : .*serviceaccounts "soon-gone" not found/)
    await fixture.client.create(serviceAccounts, { metadata: named('soon-gone') })
    await fixture.until('account', isReady)
  })
})
