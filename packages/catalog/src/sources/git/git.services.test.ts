import { mkdtemp, readdir, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutbound } from '@thv/http/outbound/outbound'
import type { GitRepository, TreeItem } from '@thv/testkit/git/git-repository'
import { type GitServer, startGitServer } from '@thv/testkit/git/git-server'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import type { FetchResult } from '../fetch/registry-handler.ts'
import type { GitSource } from '../fetch/source-config.ts'
import { createGitHandler } from './git-handler.ts'
import { type AttemptOptions, attempt, failureOf, fetchContext, gitSource, namesOf, registryFile } from './testing/attempt.ts'

let server: GitServer
let repositories = 0

beforeAll(async () => {
  server = await startGitServer()
})
afterAll(() => server[Symbol.asyncDispose]())
afterEach(() => {
  server.behaviour.legacy = false
  server.behaviour.authorization = undefined
})

let bomb: Promise<GitRepository> | undefined

/** 300 KB that unpack to 300 MB; in a pack, since git would compress it again for every answer. */
function bombed(): Promise<GitRepository> {
  bomb ??= (async () => {
    const made = await repository()
    const zeros = join(made.folder, 'zeros')
    await writeFile(zeros, '')
    await truncate(zeros, 300 * 1024 * 1024)
    const blob = await made.git('-c', 'core.bigFileThreshold=1m', 'hash-object', '-w', zeros)
    await made.commit({ 'registry.json': { blob }, 'small.json': registryFile('small') })
    return made
  })()
  return bomb
}

interface Files {
  readonly [path: string]: TreeItem
}

async function repository(files?: Files): Promise<GitRepository> {
  const made = await server.repository(`r${++repositories}.git`)
  await made.git('config', 'uploadpack.allowFilter', 'true')
  if (files !== undefined) await made.commit(files)
  return made
}

function sourceOf({ name }: GitRepository, git: Partial<GitSource> = {}): GitSource {
  return { repository: `${server.url}/${name}`, ...git }
}

async function names(from: GitRepository, git: Partial<GitSource> = {}, options: AttemptOptions = {}): Promise<string[]> {
  return namesOf(await attempt(sourceOf(from, git), options))
}

async function failure(from: GitRepository, git: Partial<GitSource> = {}, options: AttemptOptions = {}) {
  return await failureOf(attempt(sourceOf(from, git), options))
}

/** Requests to the server during some work, without the parts that every request has. */
async function requestsOf(work: () => Promise<unknown>): Promise<string[]> {
  const before = server.requests.length
  await work()
  return server.requests.slice(before).map(({ method, body }) => {
    const command = /command=([a-z-]+)/.exec(body)?.[1]
    return [method, command, ...(body.match(/filter blob:none|deepen 1|want [0-9a-f]{4}/g) ?? [])].filter(Boolean).join(' ')
  })
}

describe.each([
  { label: 'protocol 2 with filters', legacy: false, filter: true },
  { label: 'protocol 2 without filters', legacy: false, filter: false },
  { label: 'protocol 0', legacy: true, filter: true },
])('by $label', ({ legacy, filter }) => {
  async function prepared(files?: Files): Promise<GitRepository> {
    const made = await repository(files)
    await made.git('config', 'uploadpack.allowFilter', String(filter))
    server.behaviour.legacy = legacy
    return made
  }

  it('reads registry.json of the default branch, of a branch, of tags and of a commit', async () => {
    const made = await prepared({ 'registry.json': registryFile('first') })
    const first = await made.git('rev-parse', 'main')
    await made.git('tag', 'light')
    await made.git('-c', 'user.name=x', '-c', 'user.email=x@example.com', 'tag', '-m', 'annotated', 'annotated')
    await made.git('-c', 'user.name=x', '-c', 'user.email=x@example.com', 'tag', '-m', 'nested', 'nested', 'annotated')
    await made.commit({ 'registry.json': registryFile('second') })
    await made.commit({ 'registry.json': registryFile('branched') }, { branch: 'feature/x' })
    expect(await names(made)).toEqual(['com.example/second@1.0.0'])
    expect(await names(made, { branch: 'main' })).toEqual(['com.example/second@1.0.0'])
    expect(await names(made, { branch: 'feature/x' })).toEqual(['com.example/branched@1.0.0'])
    for (const tag of ['light', 'annotated', 'nested']) expect(await names(made, { tag })).toEqual(['com.example/first@1.0.0'])
    expect(await names(made, { commit: first })).toEqual(['com.example/first@1.0.0'])
    await made.git('symbolic-ref', 'HEAD', 'refs/heads/feature/x')
    expect(await names(made)).toEqual(['com.example/branched@1.0.0'])
  })

  it('reads a file or a folder that the path names', async () => {
    const made = await prepared({
      'a/b/data.json': registryFile('deep'),
      'a/run.json': { executable: registryFile('executable') },
      'servers/b.json': registryFile('b'),
      'servers/a.json': registryFile('a'),
      'servers/B.json': registryFile('capital'),
      'servers/notes.txt': 'not read',
      'servers/.hidden.json': 'not read',
      'servers/below.json/x.json': 'not read',
      'servers/below/c.json': 'not read',
      'root.json': registryFile('root'),
    })
    expect(await names(made, { path: 'a/b/data.json' })).toEqual(['com.example/deep@1.0.0'])
    expect(await names(made, { path: 'a/run.json' })).toEqual(['com.example/executable@1.0.0'])
    for (const path of ['servers', 'servers/'])
      expect(await names(made, { path })).toEqual(['com.example/capital@1.0.0', 'com.example/a@1.0.0', 'com.example/b@1.0.0'])
    expect(await names(made, { path: '.' })).toEqual(['com.example/root@1.0.0'])
  })

  it('is unchanged while the data are, whatever else is committed, and sees a force push', async () => {
    const made = await prepared({ 'registry.json': registryFile('one'), README: '1' })
    const first = await attempt(sourceOf(made))
    expect(first.kind).toBe('full')
    const again = await attempt(sourceOf(made), { state: first.state })
    expect(again).toEqual({ kind: 'unchanged', hash: first.hash, state: first.state })

    const moved = await made.commit({ 'registry.json': registryFile('one'), README: '2' })
    const other = await attempt(sourceOf(made), { state: first.state })
    expect(other).toEqual({ kind: 'unchanged', hash: first.hash, state: { ...first.state, commit: moved } })

    await made.commit({ 'registry.json': registryFile('two') }, { orphan: true })
    const forced = await attempt(sourceOf(made), { state: other.state })
    expect(namesOf(forced)).toEqual(['com.example/two@1.0.0'])
    expect(forced.hash).not.toBe(first.hash)
    expect((await attempt(sourceOf(made), { state: forced.state })).kind).toBe('unchanged')
  })

  it('reads deep chains of deltas', async () => {
    const padding = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`line${i}`, `${i * 7919}`]))
    const files = Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`folder/${String(i).padStart(2, '0')}.json`, registryFile(`s${i}`, '1.0.0', padding)]),
    )
    const made = await prepared()
    await made.git('config', 'fastimport.unpackLimit', '1') // its packs have each file as a delta of the one before
    await made.commit(files)
    const chains = [...(await made.git('verify-pack', '-v', ...(await packs(made)))).matchAll(/chain length = (\d+)/g)]
    expect(Math.max(...chains.map(([, length]) => Number(length)))).toBeGreaterThan(30)
    expect(await names(made, { path: 'folder' })).toEqual(Array.from({ length: 60 }, (_, i) => `com.example/s${i}@1.0.0`))
    expect(await names(made, { path: 'folder/59.json' })).toEqual(['com.example/s59@1.0.0'])
  })

  it('says what is missing', async () => {
    const made = await prepared({ 'registry.json': registryFile('x'), 'folder/x.json': '{}' })
    const said = async (git: Partial<GitSource>) => (await failure(made, git)).message
    expect(await said({ branch: 'nowhere' })).toContain('has no branch nowhere')
    expect(await said({ tag: 'main' })).toContain('has no tag main')
    expect(await said({ path: 'nothing.json' })).toBe('the git repository has no nothing.json')
    expect(await said({ path: 'folder/no/x.json' })).toBe('the git repository has no folder/no, so no folder/no/x.json')
    expect(await said({ path: 'registry.json/x' })).toBe('the git repository has no registry.json/x: registry.json is a file')
    expect(await said({ commit: 'ab'.repeat(20) })).toContain(`does not give out commit ${'ab'.repeat(20)}`)
    const empty = await prepared()
    expect((await failure(empty)).message).toMatch(/has no default branch with a commit|has no branch or tag: it is empty/)
    expect((await failure(empty, { branch: 'main' })).message).toMatch(/has no branch main|has no branch or tag: it is empty/)
  })

  it('follows no symlink and no submodule', async () => {
    const made = await prepared({
      'link.json': { symlink: '/etc/passwd' },
      'folder-link': { symlink: 'folder' },
      module: { submodule: 'ab'.repeat(20) },
      'folder/a.json': registryFile('a'),
      'folder/b.json': { symlink: '../secret' },
      'folder/c.json': 'no JSON',
      'folder/d.json': { submodule: 'ab'.repeat(20) },
      'bad/c.json': 'no JSON',
    })
    const said = async (path: string) => (await failure(made, { path })).message
    expect(await said('link.json')).toContain('link.json is a symbolic link, which is not followed')
    expect(await said('folder-link/a.json')).toContain('folder-link is a symbolic link')
    expect(await said('module/x.json')).toContain('module is a submodule')
    const folder = await attempt(sourceOf(made, { path: 'folder' }))
    expect(namesOf(folder)).toEqual(['com.example/a@1.0.0'])
    const problems = folder.kind === 'full' ? folder.problems.map(({ entry }) => entry) : []
    expect(problems).toEqual(['folder/b.json', 'folder/d.json', 'folder/c.json'])
    expect(await said('bad')).toContain('none of the 1 files can be used')
  })

  it('refuses a file that unpacks to far more than came, in little memory', async () => {
    const made = await bombed()
    await made.git('config', 'uploadpack.allowFilter', String(filter))
    server.behaviour.legacy = legacy
    const before = process.memoryUsage.rss()
    const error = await failure(made)
    expect(error).toMatchObject({ code: 'source_limit', message: `registry.json: is larger than ${256 * 1024 * 1024} bytes` })
    expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 * 1024)
    expect(await names(made, { path: 'small.json' })).toEqual(['com.example/small@1.0.0'])
    const tight = { limits: { maxWireBytes: 16 * 1024 * 1024 } }
    expect(await failure(made, {}, tight)).toMatchObject({ code: 'source_limit', message: expect.stringContaining('unpacks to more than') })
  })

  it('leaves nothing behind', async () => {
    const made = await prepared({ 'registry.json': registryFile('x') })
    // In a folder of its own: others read repositories too.
    const folder = await mkdtemp(join(tmpdir(), 'git-left-'))
    try {
      vi.stubEnv('TMPDIR', folder)
      await names(made)
      expect(await readdir(folder)).toEqual([])
    } finally {
      vi.unstubAllEnvs()
      await rm(folder, { recursive: true })
    }
  })
})

describe('requests to the server', () => {
  it('is nothing but the ref while that is the same, and nothing at all for a commit [001-061]', async () => {
    const made = await repository({ 'registry.json': registryFile('x') })
    const { state } = await attempt(sourceOf(made))
    expect(await requestsOf(() => attempt(sourceOf(made), { state }))).toEqual(['GET', 'POST ls-refs'])
    const commit = await made.git('rev-parse', 'main')
    const pinned = await attempt(sourceOf(made, { commit }))
    expect(await requestsOf(() => attempt(sourceOf(made, { commit }), { state: pinned.state }))).toEqual([])
  })

  it('is the folders first and then the one file', async () => {
    const made = await repository({ 'registry.json': registryFile('x'), 'large.bin': 'y'.repeat(1000) })
    const commit = await made.git('rev-parse', 'main')
    const blob = await made.git('rev-parse', 'main:registry.json')
    expect(await requestsOf(() => attempt(sourceOf(made)))).toEqual([
      'GET',
      'POST ls-refs',
      `POST fetch want ${commit.slice(0, 4)} deepen 1 filter blob:none`,
      `POST fetch want ${blob.slice(0, 4)}`,
    ])
  })

  it('is one pack where the server does not filter, or does not allow this filter', async () => {
    const made = await repository({ 'registry.json': registryFile('x') })
    const commit = (await made.git('rev-parse', 'main')).slice(0, 4)
    await made.git('config', 'uploadpack.allowFilter', 'false')
    expect(await requestsOf(() => names(made))).toEqual(['GET', 'POST ls-refs', `POST fetch want ${commit} deepen 1`])
    await made.git('config', 'uploadpack.allowFilter', 'true')
    await made.git('config', 'uploadpackfilter.blob:none.allow', 'false')
    expect(await requestsOf(() => names(made))).toEqual([
      'GET',
      'POST ls-refs',
      `POST fetch want ${commit} deepen 1 filter blob:none`,
      `POST fetch want ${commit} deepen 1`,
    ])
  })

  it('is one download for the hash and the data together', async () => {
    const made = await repository({ 'registry.json': registryFile('x') })
    await using outbound = createOutbound()
    const handler = createGitHandler(outbound)
    const context = fetchContext()
    const source = gitSource(sourceOf(made))
    let result: FetchResult | undefined
    let hash = ''
    const requests = await requestsOf(async () => {
      hash = await handler.currentHash(source, context)
      result = await handler.fetchRegistry(source, context)
    })
    expect(requests).toHaveLength(4)
    expect(result).toMatchObject({ kind: 'full', hash })
  })
})

describe('commits by hash, by protocol 0', () => {
  it('are given out when they are the end of a branch, or when the server allows it', async () => {
    const made = await repository({ 'registry.json': registryFile('old') })
    const old = await made.git('rev-parse', 'main')
    await made.commit({ 'registry.json': registryFile('new') })
    server.behaviour.legacy = true
    expect(await names(made, { commit: await made.git('rev-parse', 'main') })).toEqual(['com.example/new@1.0.0'])
    expect((await failure(made, { commit: old })).message).toContain('uploadpack.allowReachableSHA1InWant')
    for (const setting of ['allowReachableSHA1InWant', 'allowAnySHA1InWant']) {
      await made.git('config', `uploadpack.${setting}`, 'true')
      expect(await names(made, { commit: old })).toEqual(['com.example/old@1.0.0'])
      await made.git('config', '--unset', `uploadpack.${setting}`)
    }
  })
})

describe('a repository that', () => {
  it('asks for a password gets it from the file, read each time, or from the address', async () => {
    const made = await repository({ 'registry.json': registryFile('x') })
    const folder = await mkdtemp(join(tmpdir(), 'git-auth-'))
    try {
      const passwordFile = join(folder, 'token')
      const auth = { username: 'robot', passwordFile }
      server.behaviour.authorization = `Basic ${Buffer.from('robot:hunter2').toString('base64')}`
      expect((await failure(made)).message).toContain('asks for a user name and password: give them in git.auth')
      expect((await failure(made, { auth })).message).toBe(`git.auth.passwordFile ${passwordFile} cannot be read (ENOENT)`)
      await writeFile(passwordFile, 'wrong-word\n')
      const refused = await failure(made, { auth })
      expect(refused.message).toContain('refuses this user name and password')
      await writeFile(passwordFile, 'hunter2\n')
      expect(await names(made, { auth })).toEqual(['com.example/x@1.0.0'])
      const withPassword = server.url.replace('://', '://robot:hunter2@')
      expect(namesOf(await attempt({ repository: `${withPassword}/${made.name}` }))).toEqual(['com.example/x@1.0.0'])
      const wrong = await failureOf(attempt({ repository: `${server.url.replace('://', '://robot:hunter3@')}/${made.name}` }))
      for (const { message } of [refused, wrong]) expect(message).not.toMatch(/hunter|wrong-word|robot/)
    } finally {
      await rm(folder, { recursive: true })
    }
  })

  it('is missing, of SHA-256, or has something else at its path: each has its own error', async () => {
    const absent = await failureOf(attempt({ repository: `${server.url}/nowhere.git` }))
    expect(absent.message).toContain('has no git repository (404)')
    const sha256 = await server.repository('sha256.git', ['--object-format=sha256'])
    await sha256.commit({ 'registry.json': registryFile('x') })
    expect((await failure(sha256)).message).toContain('SHA-256')
    server.behaviour.legacy = true
    expect((await failure(sha256)).message).toContain('SHA-256')
    server.behaviour.legacy = false
    const made = await repository({ 'registry.json': '[1, 2' })
    expect((await failure(made)).message).toMatch(/^registry\.json: /)
  })

  it('has more objects, or sends more, than allowed is refused', async () => {
    const files = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`d${i}/registry.json`, registryFile(`s${i}`)]))
    const made = await repository(files)
    expect(await failure(made, {}, { maxObjects: 100 })).toMatchObject({
      code: 'source_limit',
      message: expect.stringContaining('202 objects'),
    })
    expect(await failure(made, {}, { limits: { maxWireBytes: 1_000 } })).toMatchObject({
      code: 'source_limit',
      message: expect.stringContaining('sends more than 1000 bytes'),
    })
  })
})

async function packs(made: GitRepository): Promise<string[]> {
  const folder = join(made.folder, 'objects', 'pack')
  return (await readdir(folder)).filter((name) => name.endsWith('.idx')).map((name) => join(folder, name))
}
