import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { runThv } from '../testing/run-thv.ts'
import { findRunning, noteRunning } from './running-platform.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-note-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('the note of a running platform', () => {
  it('is found while the process lives', () => {
    const forget = noteRunning(folder, 'https://127.0.0.1:1')
    expect(findRunning(folder)).toMatchObject({ pid: process.pid, url: 'https://127.0.0.1:1' })
    expect(statSync(join(folder, 'platform.json')).mode & 0o777).toBe(0o600)
    forget()
    expect(findRunning(folder)).toBeUndefined()
  })

  it('counts for nothing when the number belongs to another process', () => {
    noteRunning(folder, 'https://127.0.0.1:1')
    const note = JSON.parse(readFileSync(join(folder, 'platform.json'), 'utf8'))
    writeFileSync(join(folder, 'platform.json'), JSON.stringify({ ...note, start: '1' }))
    expect(findRunning(folder)).toBeUndefined()
    writeFileSync(join(folder, 'platform.json'), 'half a no')
    expect(findRunning(folder)).toBeUndefined()
  })

  it('a second platform on the folder is refused, with what to do', async () => {
    noteRunning(folder, 'https://127.0.0.1:1')
    expect((await runThv(['up', '--data-dir', folder])).error).toMatchObject({
      code: 'data_folder_in_use',
      message: expect.stringMatching(/a platform is already running in .* \(process \d+\); stop it with "thv down"/),
    })
  })
})

describe('without a platform', () => {
  it('status fails and down does not', async () => {
    expect((await runThv(['status', '--data-dir', folder])).error).toMatchObject({ code: 'platform_stopped' })
    expect(await runThv(['down', '--data-dir', folder])).toEqual({
      out: '',
      err: `No platform is running in ${folder}.\n`,
      error: undefined,
    })
  })

  it.each([
    [['--port', 'many'], /--port must be a number/],
    [['-f', 'nothing.yaml'], /file or folder not found: nothing\.yaml/],
  ])('up %j is refused before anything starts', async (args, message) => {
    const { error } = await runThv(['up', '--data-dir', folder, ...args], { cwd: folder })
    expect(error).toMatchObject({ code: 'usage', message: expect.stringMatching(message) })
  })

  it.runIf(process.platform === 'linux').each([[[]], [['--detach']]])('up %j: a data folder below /proc is an error', async (args) => {
    const { error } = await runThv(['up', '--data-dir', '/proc/none/such', ...args], { cwd: folder })
    expect(error).toMatchObject({
      code: 'data_folder_failed',
      message: 'cannot use the data folder /proc/none/such (choose another with --data-dir)',
      cause: expect.objectContaining({ code: 'ENOENT' }),
    })
  })

  it('a file that cannot be applied is refused before anything starts', async () => {
    writeFileSync(join(folder, 'bad.yaml'), 'kind: X\n')
    const { error } = await runThv(['up', '--data-dir', folder, '-f', 'bad.yaml'], { cwd: folder })
    expect(error).toMatchObject({ code: 'manifest_invalid', message: expect.stringMatching(/^bad\.yaml:1: /) })
  })
})
