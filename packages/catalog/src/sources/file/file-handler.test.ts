import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutbound } from '@thv/http/outbound/outbound'
import { isThvError } from '@thv/kernel/errors'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import type { FetchResult } from '../fetch/registry-handler.ts'
import type { FileSource, SourceConfig } from '../fetch/source-config.ts'
import { documentText, failure, namesOf, testContext } from '../testing/fetch-context.ts'
import { createFileHandler } from './file-handler.ts'
import { OF_THE_FILE } from './local-files.ts'

const outbound = createOutbound()
const handler = createFileHandler(outbound)
const roots: string[] = []
let root = ''

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'thv-file-source-'))
  roots.push(root)
})

afterAll(async () => {
  await outbound.close()
  for (const made of roots) rmSync(made, { recursive: true, force: true })
})

function source(file: FileSource, more: Partial<SourceConfig> = {}): SourceConfig {
  return { name: 'files', file, intervalMs: 60_000, ...more }
}

function fetched(path: string, context: Partial<Parameters<typeof testContext>[0]> = {}): Promise<FetchResult> {
  return handler.fetchRegistry(source({ path }), testContext(context))
}

describe('a file', () => {
  it('is read, and not read again as long as its content stays', async () => {
    const path = join(root, 'registry.json')
    writeFileSync(path, `[${documentText('a')}]`)
    const first = await fetched(path)
    expect(first).toMatchObject({ kind: 'full', problems: [] })
    expect(namesOf(first)).toEqual(['io.example/a@1.0.0'])
    writeFileSync(path, `[${documentText('a')}]`) // another time, the same content
    const { hash, state } = first
    expect(await fetched(path, { state })).toEqual({ kind: 'unchanged', hash, state })
    writeFileSync(path, `[${documentText('b')}]`)
    const third = await fetched(path, { state })
    expect(namesOf(third)).toEqual(['io.example/b@1.0.0'])
    expect(third.hash).not.toBe(hash)
  })

  it('gives hash and entries from one reading', async () => {
    const path = join(root, 'registry.json')
    writeFileSync(path, `[${documentText('a')}]`)
    const context = testContext()
    const hash = await handler.currentHash(source({ path }), context)
    writeFileSync(path, `[${documentText('b')}]`)
    const result = await handler.fetchRegistry(source({ path }), context)
    expect(result.hash).toBe(hash)
    expect(namesOf(result)).toEqual(['io.example/a@1.0.0'])
    expect(await handler.fetchRegistry(source({ path }), context)).toBe(result)
  })

  it('has another hash with another filter, format or strictness', async () => {
    const path = join(root, 'registry.json')
    writeFileSync(path, '[]')
    const hashes = await Promise.all(
      [{}, { filter: { names: { include: ['a'] } } }, { format: 'upstream' as const }, { strict: true }, { filter: {} }].map((more) =>
        handler.currentHash(source({ path }, more), testContext()),
      ),
    )
    expect(new Set(hashes).size).toBe(4)
    expect(hashes[4]).toBe(hashes[0])
  })

  it('may be inline', async () => {
    const result = await handler.fetchRegistry(source({ data: `[${documentText('a')}]` }), testContext())
    expect(namesOf(result)).toEqual(['io.example/a@1.0.0'])
  })

  it('may be a link', async () => {
    writeFileSync(join(root, 'real.json'), `[${documentText('a')}]`)
    symlinkSync('real.json', join(root, 'link.json'))
    expect(namesOf(await fetched(join(root, 'link.json')))).toEqual(['io.example/a@1.0.0'])
  })

  it('is refused when it is not there, too large or no registry', async () => {
    const path = join(root, 'registry.json')
    expect(await failure(fetched(path))).toBe(`source_failed: ${path} does not exist`)
    writeFileSync(path, `[${documentText('a')}]`)
    expect(await failure(fetched(path, { limits: { maxBytes: 20 } }))).toBe(
      `source_limit: ${path} is larger than the 20 bytes that are left to read`,
    )
    writeFileSync(path, '{"hello":"hunter2"}')
    expect(await failure(fetched(path))).toBe(`source_failed: ${path}: the document is no registry: it has no servers`)
    writeFileSync(path, 'root:hunter2:0:0')
    expect(await failure(fetched(path))).not.toContain('hunter2')
  })

  it('is not read at all when it is larger than the limit', async () => {
    const path = join(root, 'registry.json')
    writeFileSync(path, '')
    truncateSync(path, 2 ** 40) // takes no room on disk; reading it would take the afternoon
    expect(await failure(fetched(path))).toContain('source_limit: ')
  })

  it('keeps what was there before when nothing in it can be used, but may be empty', async () => {
    const path = join(root, 'registry.json')
    writeFileSync(path, '{"servers":{"a":{},"b":{}}}')
    expect(await failure(fetched(path))).toBe('source_failed: none of the 2 entries can be used. The first problem: a/image: is required')
    writeFileSync(path, '{"servers":{}}')
    expect(await fetched(path)).toMatchObject({ kind: 'full', entries: [] })
  })

  it('is refused without waiting when it is a pipe, a socket or a device', async () => {
    const pipe = join(root, 'pipe.json')
    execFileSync('mkfifo', [pipe])
    expect(await failure(fetched(pipe))).toBe(`source_failed: ${pipe} is not a regular file`)
    const socket = join(root, 'socket.json')
    const server = createServer().listen(socket)
    await new Promise((resolve) => server.once('listening', resolve))
    expect(await failure(fetched(socket))).toBe(`source_failed: ${socket} is not a regular file`)
    server.close()
    expect(await failure(fetched('/dev/zero'))).toBe('source_failed: /dev/zero is not a regular file')
  })

  it('that is being written is read again', async () => {
    const path = join(root, 'registry.json')
    const big = Array.from({ length: 10_000 }, (_, i) => documentText(`s${i}`)).join()
    writeFileSync(path, `[${big}`)
    const reading = fetched(path)
    setTimeout(() => appendFileSync(path, ']'), 2)
    // Either it was whole by then or the half was noticed; half of it is never taken for all.
    const outcome = await reading.then(
      (result) => namesOf(result).length,
      (error: unknown) => isThvError(error, 'source_failed'),
    )
    expect([10_000, true]).toContain(outcome)
  })
})

describe('a folder', () => {
  const write = (name: string, text: string) => writeFileSync(join(root, name), text)

  it('gives its .json files in the order of their names, a bad one dropped alone [003-074] [003-075]', async () => {
    write('b.json', `[${documentText('b')},${documentText('same')}]`)
    write('a.json', `{"servers":{"fetch":{"image":"x/y:1","description":"Fetches"}}}`)
    write('c.json', `[${documentText('same').replace('A server', 'Another')}]`)
    write('broken.json', '{"servers":')
    write('notes.txt', 'not for us')
    write('.hidden.json', 'not for us')
    mkdirSync(join(root, 'folder.json'))
    execFileSync('mkfifo', [join(root, 'pipe.json')])
    const result = await fetched(root)
    expect(namesOf(result)).toEqual(['io.github.stacklok/fetch@1.0.0', 'io.example/b@1.0.0', 'io.example/same@1.0.0'])
    expect(result).toMatchObject({
      problems: [
        { entry: 'broken.json', message: 'the document is not JSON: it ends in the middle (byte 11)', severity: 'dropped' },
        { entry: 'c.json: io.example/same', severity: 'dropped' },
        { entry: 'folder.json', message: 'is not a regular file' },
        { entry: 'pipe.json', message: 'is not a regular file' },
      ],
    })
  })

  it('follows links inside it only, as a mounted ConfigMap has them, and sees a new version of it', async () => {
    const swap = (version: string, text: string) => {
      mkdirSync(join(root, `..${version}`))
      write(`..${version}/registry.json`, text)
      symlinkSync(`..${version}`, join(root, '..data_tmp'))
      renameSync(join(root, '..data_tmp'), join(root, '..data'))
    }
    swap('v1', `[${documentText('a')}]`)
    symlinkSync('..data/registry.json', join(root, 'registry.json'))
    const outside = mkdtempSync(join(tmpdir(), 'thv-file-outside-'))
    roots.push(outside)
    writeFileSync(join(outside, 'x.json'), `[${documentText('outside')}]`)
    symlinkSync(join(outside, 'x.json'), join(root, 'escape.json'))
    symlinkSync('missing', join(root, 'dangling.json'))
    const first = await fetched(root)
    expect(namesOf(first)).toEqual(['io.example/a@1.0.0'])
    expect(first).toMatchObject({
      problems: [
        { entry: 'dangling.json', message: 'cannot be read (ENOENT)' },
        { entry: 'escape.json', message: 'leads out of the folder' },
      ],
    })
    swap('v2', `[${documentText('b')}]`)
    expect(namesOf(await fetched(root, { state: first.state }))).toEqual(['io.example/b@1.0.0'])
  })

  it('fails as a whole when the machine fails, so that nothing of it is taken for gone', () => {
    for (const code of ['EMFILE', 'ENFILE', 'EIO', 'ESTALE', 'ENOMEM', 'ETIMEDOUT', 'unknown']) expect(OF_THE_FILE.has(code)).toBe(false)
  })

  it('loses a file that is too large alone', async () => {
    const small = `[${documentText('small')}]`
    write('a.json', small)
    write('b.json', `[${documentText('large')}${' '.repeat(50)}]`)
    const result = await fetched(root, { limits: { maxBytes: small.length + 10 } })
    expect(namesOf(result)).toEqual(['io.example/small@1.0.0'])
    expect(result).toMatchObject({
      problems: [{ entry: 'b.json', message: `is larger than ${small.length + 10} bytes`, severity: 'dropped' }],
    })
  })

  it('may be empty, and is bounded as a whole', async () => {
    expect(await fetched(root)).toMatchObject({ kind: 'full', entries: [], problems: [{ severity: 'warning' }] })
    write('a.json', `[${documentText('a')}]`)
    write('b.json', `[${documentText('b')}]`)
    expect(await failure(fetched(root, { limits: { maxBytes: 100 } }))).toContain('source_limit')
    expect(await failure(fetched(root, { limits: { maxEntries: 1 } }))).toBe('source_limit: the source has more than 1 entries')
  })

  it('keeps what was there before when none of its files can be used', async () => {
    write('a.json', 'x')
    write('b.json', '')
    expect(await failure(fetched(root))).toContain(
      'source_failed: none of the 2 files can be used. The first problem: a.json: the document',
    )
  })
})

describe('problems of a configuration', () => {
  it('is said without touching anything', () => {
    expect(handler.validate(source({ path: '/x.json' }))).toEqual([])
    expect(handler.validate(source({ path: 'x.json' }))).toEqual(['/file/path: must be an absolute path'])
    expect(handler.validate(source({ data: '[]' }))).toEqual([])
  })
})
