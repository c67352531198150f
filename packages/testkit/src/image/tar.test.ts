import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type TarEntry, writeTar } from './tar.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tar-test-'))
})
afterEach(() => rmSync(root, { recursive: true }))

const bytes = (path: string, content: string | Uint8Array, mode?: number): TarEntry => ({
  path,
  content: { kind: 'bytes', bytes: content },
  ...(mode !== undefined && { mode }),
})

describe('writeTar', () => {
  test("writes what the system's tar reads: files of all sizes, modes, links, long paths", async () => {
    const long = `${'folder-with-a-long-name/'.repeat(6)}${'x'.repeat(90)}`
    const source = join(root, 'source')
    writeFileSync(source, Buffer.alloc(3_000_001, 7))
    const sizes = [0, 1, 511, 512, 513]
    await writeTar(join(root, 'x.tar'), [
      ...sizes.map((size) => bytes(`sizes/${size}`, 'a'.repeat(size))),
      bytes('bin/run', 'go', 0o755),
      bytes(long, 'deep'),
      { path: 'big', content: { kind: 'file', source } },
      { path: 'bin/link', content: { kind: 'link', target: '/bin/run' } },
      { path: 'tmp', mode: 0o1777, content: { kind: 'folder' } },
    ])
    const out = unpack('x.tar')
    for (const size of sizes) expect(readFileSync(join(out, `sizes/${size}`), 'utf8')).toBe('a'.repeat(size))
    expect(lstatSync(join(out, 'bin/run')).mode & 0o777).toBe(0o755)
    expect(lstatSync(join(out, 'tmp')).mode & 0o7777).toBe(0o1777)
    expect(lstatSync(join(out, 'big')).mtimeMs).toBe(0)
    expect(readFileSync(join(out, long), 'utf8')).toBe('deep')
    expect(readFileSync(join(out, 'big')).equals(readFileSync(source))).toBe(true)
    expect(readlinkSync(join(out, 'bin/link'))).toBe('/bin/run')
  })

  test('the same entries in another order and of another time give the same bytes', async () => {
    const source = join(root, 'source')
    writeFileSync(source, 'content')
    const entries: TarEntry[] = [bytes('b/2', 'x'), bytes('a', 'y'), { path: 'b/1', content: { kind: 'file', source } }]
    const one = await writeTar(join(root, '1.tar'), entries)
    utimesSync(source, 1000, 1000)
    const two = await writeTar(join(root, '2.tar'), entries.toReversed())
    expect(two).toEqual(one)
    expect(readFileSync(join(root, '1.tar')).equals(readFileSync(join(root, '2.tar')))).toBe(true)
    expect(listing('1.tar')).toEqual(['a', 'b/', 'b/1', 'b/2'])
    const other = await writeTar(join(root, '3.tar'), [bytes('b/2', 'z')])
    expect(other.sha256).not.toBe(one.sha256)
  })

  test.each<[string, TarEntry[], string]>([
    ['an absolute path', [bytes('/etc/x', '')], 'not a plain relative path'],
    ['a path that climbs', [bytes('a/../x', '')], 'not a plain relative path'],
    ['a path twice', [bytes('x', '1'), bytes('x', '2')], 'twice'],
    ['a name that does not fit', [bytes('x'.repeat(101), '')], 'too long'],
    ['a link that does not fit', [{ path: 'x', content: { kind: 'link', target: 'x'.repeat(101) } }], 'too long'],
  ])('refuses %s', async (_, entries, problem) => {
    await expect(writeTar(join(root, 'x.tar'), entries)).rejects.toThrow(problem)
  })
})

function unpack(name: string): string {
  const out = join(root, 'out')
  mkdirSync(out)
  execFileSync('tar', ['-xpf', join(root, name), '-C', out])
  return out
}

function listing(name: string): string[] {
  return execFileSync('tar', ['-tf', join(root, name)], { encoding: 'utf8' })
    .trim()
    .split('\n')
}
