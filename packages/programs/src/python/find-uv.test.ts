import { createHash } from 'node:crypto'
import { copyFile, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { isThvError } from '@thv/kernel/errors'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createProcessGuard, type ProcessGuard } from '../process-guard.ts'
import type { InstallOptions } from '../run-installer.ts'
import { type MemoryLog, memoryLog, type TestFolder, testFolder } from '../testing/program-fixtures.ts'
import { zipOf } from '../testing/zip-of.ts'
import { checkUv, findUv } from './find-uv.ts'
import type { UvRelease } from './uv-release.ts'

const FILE = 'uv-1.2.3-py3-none-any.whl'
const WHEEL = zipOf({ 'uv/__init__.py': '', 'uv-1.2.3.data/scripts/uv': `#!/bin/sh\n${'# long\n'.repeat(100)}echo uv here\n` })
const RELEASE: UvRelease = {
  version: '1.2.3',
  file: FILE,
  accepted: new Set([createHash('sha256').update(WHEEL).digest('hex')]),
}

describe('uv', () => {
  let folder: TestFolder
  let log: MemoryLog
  let guard: ProcessGuard
  let server: Server | undefined
  beforeEach(async () => {
    folder = await testFolder()
    log = memoryLog()
    guard = createProcessGuard(() => {})
    server = undefined
  })
  afterEach(async () => {
    server?.closeAllConnections()
    server?.close()
    await guard.close()
    await folder[Symbol.asyncDispose]()
  })

  const options = (env: Record<string, string> = {}): InstallOptions => ({
    dataDir: join(folder.path, 'data'),
    env: { PATH: join(folder.path, 'bin'), HOME: folder.path, PIP_CONFIG_FILE: '/dev/null', UV_NO_CONFIG: '1', ...env },
    guard,
    log,
    signal: new AbortController().signal,
  })
  const own = () => join(folder.path, 'data/uv/1.2.3/uv')

  /** A stand-in for pip that copies this wheel. */
  async function pip(wheel: Buffer, exit = 0): Promise<void> {
    await mkdir(join(folder.path, 'bin'), { recursive: true })
    await folder.write('wheel', wheel as unknown as string)
    await folder.write(
      'bin/pip3',
      `#!${process.execPath}
const fs = require('node:fs')
const args = process.argv.slice(2)
fs.appendFileSync(${JSON.stringify(join(folder.path, 'calls'))}, JSON.stringify([args, process.env]) + '\\n')
if (${exit}) { console.error('ERROR: no matching distribution'); process.exit(${exit}) }
fs.copyFileSync(${JSON.stringify(join(folder.path, 'wheel'))}, args[args.indexOf('--dest') + 1] + '/${FILE}')
`,
      0o755,
    )
  }

  /** A package index. `seen` lists path and Authorization of each request. */
  async function index(pages: Record<string, string | Buffer>, seen: string[] = []): Promise<string> {
    server = createServer((request, response) => {
      seen.push(`${request.url} ${request.headers.authorization ?? '-'}`)
      const page = pages[request.url ?? '']
      if (typeof page === 'string' && page.startsWith('→ ')) response.writeHead(302, { location: page.slice(2) }).end()
      else response.writeHead(page === undefined ? 404 : 200).end(page)
    })
    await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  it('of the machine is used as it is', async () => {
    await mkdir(join(folder.path, 'bin'))
    await copyFile('/bin/sh', join(folder.path, 'bin/uv'))
    expect(await findUv('x@1', options(), RELEASE)).toEqual({ file: join(folder.path, 'bin/uv'), env: {} })
  })

  it('is fetched once by pip, for many callers', async () => {
    await pip(WHEEL)
    const env = { PIP_INDEX_URL: 'https://index.example/simple', SECRET: 'no' }
    const [first] = await Promise.all([findUv('x@1', options(env), RELEASE), findUv('y@1', options(env), RELEASE)])
    expect(first).toEqual({ file: own(), env: { UV_DEFAULT_INDEX: 'https://index.example/simple' } })
    expect((await stat(own())).mode & 0o777).toBe(0o755)
    expect(await readFile(own(), 'utf8')).toContain('echo uv here')
    const calls = (await readFile(join(folder.path, 'calls'), 'utf8')).trim().split('\n')
    expect(calls).toHaveLength(1)
    const [args, given] = JSON.parse(calls[0] ?? '')
    expect(args).toEqual(expect.arrayContaining(['download', '--no-deps', 'uv==1.2.3']))
    expect(given).toMatchObject({ PIP_INDEX_URL: 'https://index.example/simple' })
    expect(given).not.toHaveProperty('SECRET')
    expect(await readdir(join(folder.path, 'data/uv'))).toEqual(['1.2.3'])
  })

  it('is not used when its hash is another', async () => {
    await pip(zipOf({ 'uv-1.2.3.data/scripts/uv': 'evil' }))
    const error = await findUv('x@1', options(), RELEASE).catch((e: unknown) => e)
    expect(isThvError(error, 'program_missing')).toBe(true)
    expect(String(error)).toMatch(/x@1 is installed by uv.*not the published one \(SHA-256 [0-9a-f]{64}\); it was not used.*pip install uv/)
    await expect(stat(own())).rejects.toThrow('ENOENT')
  })

  it.each([
    ['HTML', `<a href="https://elsewhere.example/uv-1.0.0.whl">old</a><a data-x="1" href="../files/${FILE}#sha256=0">${FILE}</a>`],
    [
      'JSON',
      JSON.stringify({
        files: [
          { filename: 'uv-1.0.0.whl', url: 'no' },
          { filename: FILE, url: `../files/${FILE}` },
        ],
      }),
    ],
  ])('comes from the index where pip is missing or fails: %s', async (_form, page) => {
    await pip(WHEEL, 1)
    const seen: string[] = []
    const url = await index({ '/simple/uv/': page, [`/simple/files/${FILE}`]: `→ /moved/${FILE}`, [`/moved/${FILE}`]: WHEEL }, seen)
    const env = { UV_INDEX_URL: `${url.replace('//', '//me:pw@')}/simple/` }
    expect(await findUv('x@1', options(env), RELEASE)).toEqual({ file: own(), env: {} })
    const basic = `Basic ${Buffer.from('me:pw').toString('base64')}`
    expect(seen).toEqual(['/simple/uv/', `/simple/files/${FILE}`, `/moved/${FILE}`].map((path) => `${path} ${basic}`))
  })

  it('names every reason and no password when no way works', async () => {
    const url = await index({ '/a/uv/': '<html></html>' })
    const host = new URL(url).host
    const env = { UV_INDEX: `one=http://me:hunter2@${host}/a two=http://me:hunter2@${host}/b` }
    const error = await findUv('x@1', options(env), RELEASE).catch((e: unknown) => e)
    expect(String(error)).toContain(`${host} has no ${FILE}`)
    expect(String(error)).toContain(`${host} answers 404 for /b/uv/`)
    expect(String(error) + log.text()).not.toContain('hunter2')
  })

  it('is asked for where there is neither uv, pip nor an index', async () => {
    const message = /x@1 is installed by uv, which is not on PATH, and there is neither pip nor a configured package index/
    await expect(checkUv('x@1', options(), RELEASE)).rejects.toThrow(message)
    await expect(findUv('x@1', options(), RELEASE)).rejects.toThrow(message)
    await expect(checkUv('x@1', options({ PIP_INDEX_URL: 'https://index.example' }), RELEASE)).resolves.toBeUndefined()
    await pip(WHEEL)
    await expect(checkUv('x@1', options(), RELEASE)).resolves.toBeUndefined()
  })
})
