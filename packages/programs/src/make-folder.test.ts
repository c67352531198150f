import { execFileSync } from 'node:child_process'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeFolder } from './make-folder.ts'
import { type TestFolder, testFolder } from './testing/program-fixtures.ts'

describe('makeFolder', () => {
  let folder: TestFolder
  beforeEach(async () => {
    folder = await testFolder()
  })
  afterEach(() => folder[Symbol.asyncDispose]())

  it('creates missing parents with the mode, and leaves an existing folder alone', () => {
    const path = join(folder.path, 'a/b/c')
    makeFolder(path, 0o700)
    for (const each of ['a', 'a/b', 'a/b/c']) expect(statSync(join(folder.path, each)).mode & 0o777).toBe(0o700)
    makeFolder(path, 0o755)
    expect(statSync(path).mode & 0o777).toBe(0o700)
  })

  it('rejects a path below a file', async () => {
    const file = await folder.write('file', '')
    expect(() => makeFolder(file)).toThrow('EEXIST')
    expect(() => makeFolder(join(file, 'below', 'it'))).toThrow(`EEXIST: file already exists, mkdir '${file}'`)
  })

  it.runIf(process.platform === 'linux')('ends with an error below /proc', () => {
    // In a process of its own: what never returns cannot be interrupted from inside.
    const module = fileURLToPath(new URL('./make-folder.ts', import.meta.url))
    const script = `import { makeFolder } from ${JSON.stringify(module)}; try { makeFolder('/proc/none/such') } catch (e) { console.log(e.code) }`
    expect(execFileSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 60_000, encoding: 'utf8' })).toBe('ENOENT\n')
  })
})
