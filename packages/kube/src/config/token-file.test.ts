import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TestClock } from '@thv/kernel/clock'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { tokenFile } from './token-file.ts'

describe('tokenFile', () => {
  let folder: string
  let path: string
  let clock: TestClock
  const source = () => tokenFile({ path, errorCode: 'in_cluster_config_missing', clock })

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'token-'))
    path = join(folder, 'token')
    clock = new TestClock()
    await writeFile(path, 'one\n')
  })
  afterEach(() => rm(folder, { recursive: true }))

  it('reads again after a minute, not before', async () => {
    const auth = source()
    expect(await auth.header()).toBe('Bearer one')
    await writeFile(path, 'two')
    await clock.advance(59_999)
    expect(await auth.header()).toBe('Bearer one')
    await clock.advance(1)
    expect(await auth.header()).toBe('Bearer two')
  })

  it('reads again at once after invalidate', async () => {
    const auth = source()
    await auth.header()
    await writeFile(path, 'two')
    auth.invalidate()
    expect(await auth.header()).toBe('Bearer two')
  })

  it('keeps the last token when the file is gone for a while, but not after a 401', async () => {
    const auth = source()
    await auth.header()
    await rm(path)
    await clock.advance(60_000)
    expect(await auth.header()).toBe('Bearer one')
    auth.invalidate()
    await expect(auth.header()).rejects.toMatchObject({ code: 'in_cluster_config_missing', message: expect.stringContaining(path) })
    await expect(auth.header()).rejects.toMatchObject({ code: 'in_cluster_config_missing' })
    await writeFile(path, 'two')
    expect(await auth.header()).toBe('Bearer two')
  })

  it.each(['', ' \n', 'two\nlines', 'with blank', 'ümlaut'])('refuses the content %j without quoting it', async (text) => {
    await writeFile(path, text)
    const error = await source()
      .header()
      .catch((e: unknown) => e)
    expect(error).toMatchObject({ code: 'in_cluster_config_missing' })
    if (text.trim() !== '') expect(String(error)).not.toContain(text)
  })

  it('many callers share one reading', async () => {
    const auth = source()
    expect(new Set(await Promise.all(Array.from({ length: 50 }, () => auth.header())))).toEqual(new Set(['Bearer one']))
  })
})
