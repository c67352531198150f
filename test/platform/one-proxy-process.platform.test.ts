import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pods } from '@thv/kube'
import { processStart } from '@thv/programs/process-identity'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, connect, namesOf, whoAmI } from '../e2e/stories/clients.ts'
import { SERVER, type World } from '../e2e/stories/world.ts'
import { eventually, fixtureFolder, worldOf } from './fixture-platform.ts'
import { processesOf } from './folder-processes.ts'
import type { DataFolder, PlatformProcess } from './platform-process.ts'
import { commandsWith } from './process-list.ts'
import { thv } from './thv-command.ts'

/* `thv up --one-proxy-process`: what its documentation promises (docs/how-to/memory.md). */

const NAMESPACE = 'together'
const NONSENSE = 'MALLOC_TRIM_THRESHOLD_'

describe('the local platform with one process for all proxies', () => {
  let folder: DataFolder
  let platform: PlatformProcess
  let world: World
  beforeAll(async () => {
    folder = await fixtureFolder()
    process.env[NONSENSE] = 'lots'
    platform = await folder.up('--bare', '--no-registry', '--one-proxy-process').finally(() => delete process.env[NONSENSE])
    world = await worldOf(platform, NAMESPACE)
    await world.create(SERVER, 'piped', { image: world.images.fixture, args: ['--name', 'piped'] })
    await world.create(SERVER, 'web', { image: world.images.fixture, transport: 'streamable-http', args: ['--name', 'web'] })
    const resourceOverrides = { proxyDeployment: { env: [{ name: 'NODE_OPTIONS', value: '--max-semi-space-size=8' }] } }
    const apart = { image: world.images.fixture, transport: 'streamable-http', args: ['--name', 'apart'], resourceOverrides }
    await world.create(SERVER, 'apart', apart)
    for (const name of ['piped', 'web', 'apart']) await world.reaches(SERVER, name, 'Running')
  })
  afterAll(async () => {
    await world?.[Symbol.asyncDispose]()
    await folder?.[Symbol.asyncDispose]()
  })

  const urlOf = async (name: string) => (await world.client.get(SERVER, world.at(name))).status?.url ?? ''
  const proxyOf = async (name: string) => (await world.proxyPods(name))[0]
  const containerOf = async (name: string) => (await proxyOf(name))?.status?.containerStatuses?.[0]
  const restartsOf = async (name: string) => (await containerOf(name))?.restartCount ?? -1
  /** At least once: on a busy machine a probe may restart it again. */
  const killedSince = async (name: string, restarts: number) =>
    await eventually(`${name} was restarted`, async () => {
      const { restartCount = -1, lastState } = (await containerOf(name)) ?? {}
      return restartCount > restarts && lastState?.terminated?.exitCode === 137 && lastState.terminated.reason === 'Error'
    })
  /** Processes of proxies by their last argument: `host`, or `run`. */
  const proxyProcesses = (argument: string): number[] => {
    const own = new Set(processesOf(platform).map(({ pid }) => pid))
    const found = commandsWith('apps-proxyrunner-src-main').filter(
      ({ pid, command }) => own.has(pid) && command.startsWith(process.execPath),
    )
    return found.filter(({ command }) => command.endsWith(` ${argument}`)).map(({ pid }) => pid)
  }
  const answers = async (name: string) => {
    await using client = await connect('v2', await urlOf(name))
    expect(namesOf(await client.tools())).toContain('echo')
    expect((await whoAmI(client)).name).toBe(name)
  }

  test('a memory setting that has no effect is named in the log of the platform, and everything runs', async () => {
    const log = await readFile(join(platform.folder, 'platform.log'), 'utf8')
    expect(log).toContain(`${NONSENSE}: \\"lots\\" is not a number and has no effect`)
  })

  test('an HTTP and a stdio server answer through one process, each with a log of its own', async () => {
    expect(proxyProcesses('host')).toHaveLength(1)
    for (const name of ['piped', 'web']) await answers(name)
    for (const [name, other] of [
      ['piped', 'web'],
      ['web', 'piped'],
    ] as const) {
      const log = await thv(platform, 'logs', `pod/${(await proxyOf(name))?.metadata.name}`, '-n', NAMESPACE)
      expect(log).toContain(`server=${name} `)
      expect(log).not.toContain(`server=${other} `)
    }
  })

  test('a proxy with options of Node has a process of its own', async () => {
    await answers('apart')
    expect([proxyProcesses('host').length, proxyProcesses('run').length]).toEqual([1, 1])
  })

  test('a crash of the process restarts the proxies in it, and no other', async () => {
    const [pid = -1] = proxyProcesses('host')
    const before = { piped: await restartsOf('piped'), web: await restartsOf('web'), apart: await restartsOf('apart') }
    process.kill(pid, 'SIGKILL')
    await eventually('it is gone', () => processStart(pid) === undefined)
    for (const name of ['piped', 'web'] as const) {
      await killedSince(name, before[name])
      await eventually(`${name} answers again`, async () => (await ask(await urlOf(name), 'echo', { message: 'x' })).isError !== true)
    }
    expect(await restartsOf('apart')).toBe(before.apart)
    expect(proxyProcesses('host')).toHaveLength(1)
  })

  test('a hang stops all proxies; when one of them does not end in time, the process is killed and the others start again', async () => {
    const [pid = -1] = proxyProcesses('host')
    const before = await restartsOf('web')
    const { metadata } = (await proxyOf('piped')) ?? { metadata: { name: '' } }
    process.kill(pid, 'SIGSTOP')
    await world.client.delete(pods, world.at(metadata.name), { gracePeriodSeconds: 1 })
    await killedSince('web', before)
    expect(processStart(pid)).toBeUndefined()
    for (const name of ['piped', 'web'])
      await eventually(`${name} answers again`, async () => (await ask(await urlOf(name), 'echo', { message: 'x' })).isError !== true)
    expect(proxyProcesses('host')).toHaveLength(1)
  })

  test('the end of one proxy is the end of no other', async () => {
    const [pid] = proxyProcesses('host')
    const restarts = await restartsOf('web')
    if (await world.client.tryGet(SERVER, world.at('piped'))) await thv(platform, 'delete', 'mcpserver', 'piped', '-n', NAMESPACE)
    await eventually('its proxy is gone', async () => (await world.proxyPods('piped')).length === 0)
    await answers('web')
    expect([proxyProcesses('host'), await restartsOf('web')]).toEqual([[pid], restarts])
    expect((await world.client.list(pods, { namespace: NAMESPACE })).items.some(({ status }) => status?.phase === 'Failed')).toBe(false)
  })
})
