import { statSync } from 'node:fs'
import { join } from 'node:path'
import { configMaps, type KubeClient, pods } from '@thv/kube'
import { canMountDisks, fillDisk, mountSmallDisk, refuseLongerFiles } from '@thv/testkit/run/small-disk'
import { afterEach, expect, test } from 'vitest'
import { clientOf, ensureNamespace, eventually } from './fixture-platform.ts'
import { type DataFolder, dataFolder, type PlatformProcess } from './platform-process.ts'

/*
 * A disk without room. Who may mount gives the data folder a small file system of its own; else the system is set to refuse the platform
 * longer files, which is the same to it.
 */

const NAMESPACE = 'full'
const TEXT = 'x'.repeat(20_000)
const canMount = canMountDisks()

let folder: DataFolder | undefined
let mounted: Disposable | undefined
let platform: PlatformProcess | undefined
afterEach(async () => {
  await platform?.stop()
  mounted?.[Symbol.dispose]()
  await folder?.[Symbol.asyncDispose]()
  platform = mounted = folder = undefined
})

test('refuses what cannot be stored, keeps what it has acknowledged, and goes on when there is room', async () => {
  folder = await dataFolder()
  mount(folder.path, '32m')
  platform = await folder.up('--bare')
  let client = await clientOf(platform)
  await ensureNamespace(client, NAMESPACE)
  await client.create(pods, { metadata: { namespace: NAMESPACE, name: 'writes' }, spec: writer() })
  await eventually(
    'the pod runs',
    async () => (await client.get(pods, { namespace: NAMESPACE, name: 'writes' })).status?.phase === 'Running',
  )

  const acknowledged = new Map<string, string>()
  const give = fill(folder.path, platform.pid)
  const refusal = await writeUntilRefused(client, acknowledged)
  expect(refusal).toMatchObject({ status: 500, reason: 'InternalError', message: expect.stringMatching(/nothing was stored/) })
  expect(refusal.message).toMatch(canMount ? /disk is full/ : /disk is full|disk I\/O error/)
  // Again and again, and for deletions too; what is there can be read.
  await expect(client.create(configMaps, { metadata: { namespace: NAMESPACE, name: 'more' }, data: { TEXT } })).rejects.toThrow(/stored/)
  expect(await stored(client)).toEqual(acknowledged)

  const { metadata } = await client.get(pods, { namespace: NAMESPACE, name: 'writes' })
  const log = join(folder.path, 'node/logs', metadata.uid ?? '', 'main/0-0.log')
  const { size } = statSync(log)
  give()
  await eventually('there is room again', async () => await write(client, 'afterwards', acknowledged))
  for (let index = 0; index < 20; index++) await write(client, `afterwards-${index}`, acknowledged)
  expect(await stored(client)).toEqual(acknowledged)
  await eventually('the pod has gone on, and its log goes on as well', () => statSync(log).size > size + 100)

  await client.close()
  await platform.kill()
  platform = await folder.up('--bare')
  client = await clientOf(platform)
  expect(await stored(client)).toEqual(acknowledged)
  expect((await client.get(pods, { namespace: NAMESPACE, name: 'writes' })).metadata.uid).toBe(metadata.uid)
  await client.close()
})

// Only a file system can be too small from the beginning.
if (canMount)
  test('says so when there is no room to start', async () => {
    folder = await dataFolder()
    mount(folder.path, '256k')
    await expect(folder.up('--bare')).rejects.toThrow(/ended with 1:\nthv: no space left for \S+; free some, or choose another/)
  })

function mount(path: string, size: string): void {
  if (canMount) mounted = mountSmallDisk(path, size)
}

/** Takes all room; returns how to give it back. */
function fill(path: string, pid: number): () => void {
  return canMount ? fillDisk(path) : refuseLongerFiles(pid)
}

interface Refusal {
  readonly status: number
  readonly reason: string
  readonly message: string
}

/** The log of the store may have room for some more. */
async function writeUntilRefused(client: KubeClient, acknowledged: Map<string, string>): Promise<Refusal> {
  for (let index = 0; index < 1_000; index++) {
    try {
      await write(client, `m${index}`, acknowledged)
    } catch (error) {
      return error as Refusal
    }
  }
  throw new Error('the disk never was full')
}

async function write(client: KubeClient, name: string, acknowledged: Map<string, string>): Promise<true> {
  const value = `${name} ${TEXT}`
  await client.create(configMaps, { metadata: { namespace: NAMESPACE, name }, data: { value } })
  acknowledged.set(name, value)
  return true
}

async function stored(client: KubeClient): Promise<Map<string, string>> {
  const { items } = await client.list(configMaps, { namespace: NAMESPACE })
  return new Map(items.flatMap(({ metadata, data }) => (data?.['value'] === undefined ? [] : [[metadata.name, data['value']]])))
}

/** Its log takes room as well. */
function writer() {
  return { containers: [{ name: 'main', image: 'exec:///bin/sh', args: ['-c', 'while true; do echo a line; sleep 0.1; done'] }] }
}
