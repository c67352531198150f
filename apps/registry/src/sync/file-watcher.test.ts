import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '@thv/kernel/clock'
import { createLogger } from '@thv/telemetry/log'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createFileWatcher, type FileWatcher } from './file-watcher.ts'

let folder: string
let watcher: FileWatcher
let changes: string[]
let failing: boolean
/** Calls that failed. */
let missed: number
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'registry-files-'))
  changes = []
  failing = false
  missed = 0
  watcher = createFileWatcher({
    clock: systemClock,
    log: createLogger({ level: 'error', write: () => undefined }),
    debounceMs: 10,
    pollMs: 50,
    async onChange(source) {
      if (failing) {
        missed++
        throw new Error('the store is away')
      }
      changes.push(source)
    },
  })
})
afterEach(async () => {
  await watcher[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const changed = (count: number) => expect.poll(() => changes.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(count)

/** Waits until watching has begun: the watcher reports each file that exists once. */
async function follow(paths: Readonly<Record<string, string>>): Promise<void> {
  watcher.set(new Map(Object.entries(paths)))
  await expect.poll(() => changes.toSorted()).toEqual(Object.keys(paths).toSorted())
  changes.length = 0
}

describe('createFileWatcher', () => {
  it('tells once of files that are there when it begins, and not of missing ones', async () => {
    const path = join(folder, 'servers.json')
    writeFileSync(path, 'one')
    watcher.set(new Map(Object.entries({ there: path, missing: join(folder, 'missing.json') })))
    await changed(1)
    await systemClock.sleep(200)
    expect(changes).toEqual(['there'])
  })

  it('tells of a file that is written, replaced, removed and made again', async () => {
    const path = join(folder, 'servers.json')
    writeFileSync(path, 'one')
    await follow({ a: path })
    writeFileSync(path, 'another')
    await changed(1)
    writeFileSync(`${path}.new`, 'third')
    renameSync(`${path}.new`, path)
    await changed(2)
    rmSync(path)
    await changed(3)
    writeFileSync(path, 'fourth one')
    await changed(4)
    expect(new Set(changes)).toEqual(new Set(['a']))
  })

  it('tells of files in a folder, and of a mounted ConfigMap that is swapped', async () => {
    const mount = join(folder, 'mount')
    for (const version of ['..v1', '..v2']) {
      mkdirSync(join(mount, version), { recursive: true })
      writeFileSync(join(mount, version, 'a.json'), version)
    }
    symlinkSync('..v1', join(mount, '..data'))
    symlinkSync(join('..data', 'a.json'), join(mount, 'a.json'))
    await follow({ mounted: mount })
    symlinkSync('..v2', join(mount, '..data_tmp'))
    renameSync(join(mount, '..data_tmp'), join(mount, '..data'))
    await changed(1)
    writeFileSync(join(mount, 'b.json'), 'new')
    await changed(2)
  })

  it('tells again when the news could not be taken', async () => {
    const path = join(folder, 'servers.json')
    writeFileSync(path, 'one')
    await follow({ a: path })
    failing = true
    writeFileSync(path, 'another')
    await expect.poll(() => missed).toBeGreaterThan(0)
    failing = false
    await changed(1)
  })

  it('is silent about sources that are gone, and about those whose path is another', async () => {
    const [one, two] = [join(folder, 'one.json'), join(folder, 'two.json')]
    for (const path of [one, two]) writeFileSync(path, 'first')
    await follow({ gone: one, moved: one })
    await follow({ moved: two })
    writeFileSync(one, 'changed')
    writeFileSync(two, 'changed')
    await changed(1)
    expect(new Set(changes)).toEqual(new Set(['moved']))
  })
})
