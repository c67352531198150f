import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { gitPlace } from '../git/git-credential.ts'
import { readSmallFile } from './small-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'thv-small-file-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const password = (passwordFile: string) => gitPlace({ repository: 'https://example.com/r', auth: { username: 'robot', passwordFile } })

it('is read as it is, up to a limit', async () => {
  const path = join(folder, 'good')
  writeFileSync(path, 'hunter2\n')
  expect((await readSmallFile({ path, label: 'x' })).toString()).toBe('hunter2\n')
  expect(await password(path)).toMatchObject({ authorization: `Basic ${btoa('robot:hunter2')}` })
  writeFileSync(path, 'x'.repeat(65_537))
  const large = { code: 'source_limit', message: `git.auth.passwordFile ${path} is larger than 65536 bytes` }
  await expect(password(path)).rejects.toMatchObject(large)
})

it('is neither a pipe, nor a device, nor a folder', async () => {
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const path of [pipe, '/dev/zero', folder])
    await expect(password(path)).rejects.toMatchObject({
      code: 'source_failed',
      message: `git.auth.passwordFile ${path} is not a regular file`,
    })
  await expect(password(join(folder, 'missing'))).rejects.toThrow('cannot be read (ENOENT)')
})
