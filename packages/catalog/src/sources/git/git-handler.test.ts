import { tmpdir } from 'node:os'
import { createOutbound } from '@thv/http/outbound/outbound'
import { startBackend } from '@thv/http/testing/backend'
import { ThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createGitHandler } from './git-handler.ts'
import { DELIM, FLUSH, packetLine } from './pkt-line.ts'
import { attempt, failureOf, fetchContext, gitSource, namesOf, registryFile } from './testing/attempt.ts'
import {
  type Answer,
  advertise,
  advertisementHead,
  band,
  type FakeAnswers,
  packAnswer,
  refs,
  resultHead,
  startFakeGitServer,
  writeForever,
} from './testing/fake-git-server.ts'
import { buildCommit, buildPack } from './testing/pack-builder.ts'

const commit = buildCommit({ 'registry.json': registryFile('x') })

async function failureWith(answers: FakeAnswers, options: Parameters<typeof attempt>[1] = {}) {
  await using server = await startFakeGitServer(commit, answers)
  return await failureOf(attempt({ repository: `${server.url}/r.git` }, options))
}

describe('a server of protocol 2', () => {
  it('is read with its pack in many pieces, with talk and keep-alives in between', async () => {
    const pack = buildPack(commit.objects)
    await using server = await startFakeGitServer(commit, {
      fetch(response) {
        resultHead(response).write(
          [packetLine('shallow-info'), packetLine(`shallow ${commit.oid}`), DELIM, packetLine('packfile')].join(''),
        )
        for (const byte of pack) response.write(Buffer.concat([band(1, Buffer.from([byte])), band(2, 'talk\n'), band(1, '')]))
        response.end(FLUSH)
      },
    })
    const result = await attempt({ repository: `${server.url}/r.git/` })
    expect(namesOf(result)).toEqual(['com.example/x@1.0.0'])
    expect(server.requests.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /r.git/info/refs?service=git-upload-pack',
      'POST /r.git/git-upload-pack',
      'POST /r.git/git-upload-pack',
    ])
    expect(
      server.requests.every(({ headers }) => headers['git-protocol'] === 'version=2' && headers['user-agent']?.startsWith('git/')),
    ).toBe(true)
  })

  it('that ignores the filter, or what was asked, is read all the same', async () => {
    await using server = await startFakeGitServer(commit, { advertisement: advertise('fetch=shallow filter') })
    expect(namesOf(await attempt({ repository: server.url }))).toEqual(['com.example/x@1.0.0'])
  })
})

describe('a server that misbehaves', () => {
  const hang: Answer = () => {}
  const hangInside: Answer = (response) => void resultHead(response).write(packetLine('packfile'))
  it('by hanging at once, at the refs, at the pack or inside it is given up', async () => {
    const places: FakeAnswers[] = [{ advertisement: hang }, { refs: hang }, { fetch: hang }, { fetch: hangInside }]
    for (const error of await Promise.all(places.map((answers) => failureWith(answers, { idleMs: 50 }))))
      expect(error).toMatchObject({ code: 'source_limit', message: expect.stringContaining('was silent for 50 ms') })
  })

  it('by sending a little now and then is given up when the whole time is over', async () => {
    const drip: Answer = (response) => {
      resultHead(response).write(packetLine('packfile'))
      const timer = setInterval(() => response.write(band(2, '.')), 10)
      response.on('close', () => clearInterval(timer))
    }
    const error = await failureWith({ fetch: drip }, { limits: { timeoutMs: 200 } })
    expect(error).toMatchObject({ code: 'source_limit', message: 'the source was not read within 200ms' })
  })

  const piece = band(1, Buffer.alloc(60_000, 7))
  const head = buildPack([], { count: 5 }).subarray(0, 12)
  it.each<[string, FakeAnswers]>([
    ['packs', { fetch: (response) => writeForever(resultHead(response), startingWith([packetLine('packfile'), band(1, head)], piece)) }],
    [
      'talk',
      { fetch: (response) => writeForever(resultHead(response), startingWith([packetLine('packfile')], band(2, 'x'.repeat(60_000)))) },
    ],
    [
      'refs',
      { refs: (response) => writeForever(resultHead(response), () => Buffer.from(packetLine(`${commit.oid} refs/heads/x`).repeat(1_000))) },
    ],
    [
      'capabilities',
      {
        advertisement: (response) =>
          writeForever(advertisementHead(response), startingWith([packetLine('version 2')], Buffer.from(packetLine('a=b').repeat(5_000)))),
      },
    ],
    [
      'refs of protocol 0',
      {
        advertisement: (response) =>
          writeForever(advertisementHead(response), () => Buffer.from(packetLine(`${commit.oid} refs/heads/x`).repeat(1_000))),
      },
    ],
  ])('by sending %s without end is cut off', async (_name, answers) => {
    const error = await failureWith(answers, { limits: { maxWireBytes: 500_000 } })
    expect(error).toMatchObject({ code: 'source_limit', message: expect.stringContaining('sends more than 500000 bytes') })
  })

  const says =
    (text: string): Answer =>
    (response) =>
      void resultHead(response).end(text)
  const otherType: Answer = (response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
  const status =
    (code: number): Answer =>
    (response) =>
      void response.writeHead(code).end('secret words')
  it.each<[string, FakeAnswers, string]>([
    ['a web page', { advertisement: otherType }, 'is no git repository with the smart HTTP protocol'],
    ['nothing', { advertisement: (response) => void advertisementHead(response).end() }, 'has no branch or tag'],
    ['garbage', { advertisement: (response) => void advertisementHead(response).end('zzzz') }, 'not the protocol of git'],
    ['status 403', { advertisement: status(403) }, 'forbids it (403)'],
    ['status 404', { advertisement: status(404) }, 'has no git repository (404)'],
    ['status 500', { fetch: status(500) }, 'answers with status 500'],
    ['status 429', { refs: status(429) }, 'is too busy (429)'],
    ['compression', { refs: (response) => void response.writeHead(200, { 'content-encoding': 'br' }).end() }, 'compresses its answer'],
    [
      'SHA-256',
      {
        advertisement: (response) =>
          void advertisementHead(response).end(packetLine('version 2') + packetLine('object-format=sha256') + FLUSH),
      },
      'SHA-256',
    ],
    ['an error', { refs: says(packetLine('ERR go\u001b[31m\naway\u202e')) }, 'the git server says: go [31m away'],
    ['no refs', { refs: says(FLUSH) }, 'has no default branch with a commit'],
    ['a strange hash', { refs: says(`${packetLine('xyz HEAD')}${FLUSH}`) }, 'has no default branch with a commit'],
    ['half a packet', { refs: says('00ff') }, 'in the middle of a packet'],
    ['no pack', { fetch: says(FLUSH) }, 'no complete pack'],
    ['half a pack', { fetch: packAnswer(buildPack(commit.objects).subarray(0, 200)) }, 'does not have the checksum'],
    [
      'an error inside the pack',
      { fetch: (r) => void resultHead(r).end(Buffer.concat([Buffer.from(packetLine('packfile')), band(3, 'out of memory')])) },
      'the git server says: out of memory',
    ],
    [
      'an unknown band',
      { fetch: (r) => void resultHead(r).end(Buffer.concat([Buffer.from(packetLine('packfile')), band(9, 'x')])) },
      'something else than a pack',
    ],
    ['another commit', { fetch: packAnswer(buildPack(buildCommit({ a: 'b' }).objects)) }, `sent no commit ${commit.oid}`],
    [
      'a commit without its folder',
      { fetch: packAnswer(buildPack(commit.objects.slice(2))) },
      'did not send a tree that belongs to the commit',
    ],
    [
      'a commit without its file',
      { fetch: packAnswer(buildPack(commit.objects.slice(1))) },
      'did not send a file that belongs to the commit',
    ],
  ])('by sending %s is understood', async (_name, answers, message) => {
    const error = await failureWith(answers)
    expect(error.code).toBe('source_failed')
    expect(error.message).toContain(message)
    expect(error.message).not.toMatch(/secret|\p{C}/u)
  })

  it('by closing the connection, or by not being there, is understood', async () => {
    const broken = await failureWith({ fetch: (response) => void resultHead(response).destroy() })
    expect(broken).toMatchObject({ code: 'source_failed', message: expect.stringContaining('broke the connection') })
    const absent = await failureOf(attempt({ repository: 'http://127.0.0.1:1/r.git' }))
    expect(absent).toMatchObject({ code: 'source_failed', message: expect.stringContaining('refused the connection') })
  })

  it('never brings about anything but a coded error, whatever it sends', async () => {
    const part = fc.constantFrom(
      packetLine('packfile'),
      packetLine('shallow-info'),
      packetLine('ERR x'),
      '0000',
      '0001',
      '0002',
      '0003',
      packetLine(`${commit.oid} HEAD`),
      packetLine('version 2'),
      packetLine('version 1'),
      packetLine('fetch=filter shallow'),
      band(1, buildPack(commit.objects)).toString('latin1'),
      band(1, 'PACK').toString('latin1'),
      'x',
    )
    const answer = fc.oneof(
      fc.array(part, { maxLength: 6 }).map((parts) => Buffer.from(parts.join(''), 'latin1')),
      fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    )
    let now = { advertisement: Buffer.alloc(0), refs: Buffer.alloc(0), fetch: Buffer.alloc(0) }
    await using server = await startFakeGitServer(commit, {
      advertisement: (response, request) =>
        now.advertisement.length % 2 === 0 ? advertise()(response, request) : void advertisementHead(response).end(now.advertisement),
      refs: (response, request) =>
        now.refs.length % 2 === 0 ? refs(commit.oid)(response, request) : void resultHead(response).end(now.refs),
      fetch: (response) => void resultHead(response).end(now.fetch),
    })
    await fc.assert(
      fc.asyncProperty(fc.record({ advertisement: answer, refs: answer, fetch: answer }), async (answers) => {
        now = answers
        const error = await attempt({ repository: server.url }).then(
          () => undefined,
          (e: unknown) => e,
        )
        if (error !== undefined) expect(error).toBeInstanceOf(ThvError)
      }),
      { numRuns: 40 },
    )
  })
})

describe('a redirect', () => {
  const to =
    (location: string): Answer =>
    (response) =>
      void response.writeHead(302, { location }).end()
  const tail = '/info/refs?service=git-upload-pack'

  it('is followed to another place of the repository, and the password stays where it belongs', async () => {
    await using target = await startFakeGitServer(commit)
    await using server = await startFakeGitServer(commit, { advertisement: to(`${target.url}/moved.git${tail}`) })
    const result = await attempt({ repository: `${server.url.replace('://', '://robot:hunter2@')}/r.git` })
    expect(namesOf(result)).toEqual(['com.example/x@1.0.0'])
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([`Basic ${btoa('robot:hunter2')}`])
    expect(target.requests.map(({ url }) => url)).toEqual([`/moved.git${tail}`, '/moved.git/git-upload-pack', '/moved.git/git-upload-pack'])
    expect(target.requests.map(({ headers }) => headers.authorization)).toEqual([undefined, undefined, undefined])
  })

  it('inside the same origin keeps the password', async () => {
    await using server = await startFakeGitServer(commit, {
      advertisement: (response, request) => (request.url.startsWith('/old') ? to(`/new.git${tail}`) : advertise())(response, request),
    })
    await attempt({ repository: `${server.url.replace('://', '://robot:hunter2@')}/old.git` })
    expect(new Set(server.requests.map(({ headers }) => headers.authorization)).size).toBe(1)
  })

  it.each<[string, string, string, string]>([
    ['a file', 'file:///etc/passwd', 'source_blocked', 'redirects to the scheme file, which is not allowed'],
    ['another scheme', 'gopher://example.com/', 'source_blocked', 'scheme gopher'],
    ['a metadata address', `http://169.254.169.254${tail}`, 'source_blocked', 'may not be fetched: 169.254.169.254'],
    ['a metadata name', `http://metadata.google.internal${tail}`, 'source_blocked', 'metadata service'],
    ['an address with a password', `http://a:b@127.0.0.1${tail}`, 'source_blocked', 'with a user name'],
    ['something else', 'http://127.0.0.1/login', 'source_failed', 'something that is no git repository'],
    ['nowhere', 'http://[', 'source_failed', 'what is no URL'],
  ])('to %s is refused', async (_name, location, code, message) => {
    const error = await failureWith({ advertisement: to(location) })
    expect(error.code).toBe(code)
    expect(error.message).toContain(message)
  })

  it('without an end is given up, and one of the pack is not followed', async () => {
    const loop = await failureWith({ advertisement: to(`/again${tail}`) })
    expect(loop.message).toContain('redirects more than 5 times')
    const later = await failureWith({ fetch: to('/elsewhere') })
    expect(later.message).toContain('redirects a request that cannot be repeated elsewhere')
  })
})

describe('an address', () => {
  it.each(['http://127.0.0.1:1/r.git', 'http://10.1.2.3/r.git', 'http://[::1]/r', 'http://localhost/r'])(
    'of a private network or this machine is refused unless allowed: %s',
    async (repository) => {
      const error = await failureOf(attempt({ repository }, { allowPrivateAddresses: false }))
      expect(error.code).toBe('source_blocked')
      expect(error.message).toContain('(allowPrivateAddresses is off)')
    },
  )

  it('of metadata is refused in any case', async () => {
    expect((await failureOf(attempt({ repository: 'http://169.254.169.254/r.git' }))).code).toBe('source_blocked')
  })

  it('that is no http is not even tried, and no password is shown', async () => {
    for (const repository of ['file:///etc', 'ssh://git@example.com/x', 'git@example.com:x', 'https://u:hunter2@exa mple.com'])
      expect((await failureOf(attempt({ repository }))).message).toMatch(/^the source is not configured as it must be: (?!.*hunter2)/)
  })
})

describe('a path in a commit', () => {
  const read = async (files: Record<string, string>, path: string) => {
    const built = buildCommit(files)
    await using server = await startFakeGitServer(built)
    return await attempt({ repository: server.url, path })
  }

  it.each(['..', '.', '.git', '.GIT', 'a/b', ''])('is refused in a folder that has the name %j', async (name) => {
    const error = await failureOf(read({ 'registry.json': registryFile('x'), [`100644 ${name}`]: 'x' }, 'registry.json'))
    expect(error.message).toContain('an entry with a forbidden name')
  })

  it.each(['120000', '160000', '100664', '0', '777'])('is refused with the mode %s', async (mode) => {
    const error = await failureOf(read({ [`${mode} registry.json`]: registryFile('x') }, 'registry.json'))
    expect(error.message).toMatch(/^registry\.json is (a symbolic link|a submodule|neither a file nor a folder)/)
  })

  it('that is a folder loses a bad file alone, and a link, and says of both that they were dropped', async () => {
    const result = await read({ 'a.json': registryFile('a'), 'b.json': '{"servers":', '120000 c.json': 'a.json' }, '.')
    expect(namesOf(result)).toEqual(['com.example/a@1.0.0'])
    expect(result).toMatchObject({
      problems: [
        { entry: 'c.json', message: expect.stringContaining('symbolic link'), severity: 'dropped' },
        { entry: 'b.json', message: expect.stringContaining('is not JSON'), severity: 'dropped' },
      ],
    })
  })

  it('that holds too much is refused, and a file of a folder that is too large is left out alone', async () => {
    const small = registryFile('small')
    const limits = { maxBytes: small.length + 10 }
    const built = buildCommit({ 'a.json': small, 'b.json': registryFile('large', '1.0.0', { more: 'x'.repeat(500) }) })
    await using server = await startFakeGitServer(built)
    const folder = await attempt({ repository: server.url, path: '.' }, { limits })
    expect(namesOf(folder)).toEqual(['com.example/small@1.0.0'])
    const message = `is larger than ${limits.maxBytes} bytes`
    expect(folder).toMatchObject({ problems: [{ entry: 'b.json', message, severity: 'dropped' }] })
    expect(await failureOf(attempt({ repository: server.url, path: 'b.json' }, { limits }))).toMatchObject({ code: 'source_limit' })
    const together = { limits: { maxBytes: small.length + 600 } }
    expect(await failureOf(attempt({ repository: server.url, path: '.' }, together))).toMatchObject({
      code: 'source_limit',
      message: expect.stringContaining('together'),
    })
  })
})

describe('an attempt', () => {
  it('that is given up ends at once', async () => {
    const stop = new AbortController()
    await using server = await startFakeGitServer(commit, { fetch: () => stop.abort(new Error('the program ends')) })
    const error = await failureOf(attempt({ repository: server.url }, { signal: stop.signal }))
    expect(error.code).toBe('aborted')
  })

  it('does not trust the state of a source that was configured in another way', async () => {
    await using server = await startFakeGitServer(commit)
    const first = await attempt({ repository: server.url })
    expect((await attempt({ repository: server.url }, { state: first.state })).kind).toBe('unchanged')
    expect((await attempt({ repository: server.url, branch: 'main' }, { state: first.state }).catch(() => ({ kind: 'failed' }))).kind).toBe(
      'failed',
    )
    expect((await attempt({ repository: server.url }, { state: { ...first.state, identity: 'x' } })).kind).toBe('full')
    expect((await attempt({ repository: server.url }, { state: { ...first.state, hash: 5 } })).kind).toBe('full')
  })

  it('warns of a password that is sent in the clear, but not each time that nothing has changed', async () => {
    await using server = await startFakeGitServer(commit)
    const warnings: string[] = []
    const repository = server.url.replace('://', '://robot:hunter2@')
    const { state } = await attempt({ repository }, { warnings })
    await attempt({ repository }, { warnings, state })
    expect(warnings).toEqual([`the password for ${server.url}/ is sent without TLS`])
  })

  it('fails when no temporary file can be made', async () => {
    await using server = await startFakeGitServer(commit)
    await using outbound = createOutbound()
    const context = { ...fetchContext(), tempDir: `${tmpdir()}/not/there` }
    const error = await failureOf(createGitHandler(outbound).fetchRegistry(gitSource({ repository: server.url }), context))
    expect(error.message).toBe('no temporary file can be made for the git repository')
  })

  it('fails with what the configuration lacks', async () => {
    await using outbound = createOutbound()
    const handler = createGitHandler(outbound)
    expect(handler.validate(gitSource({ repository: 'https://example.com/r.git', branch: 'a', tag: 'b' }))).toEqual([
      expect.stringContaining('at most one of branch, tag and commit'),
    ])
    expect(handler.validate(gitSource({ repository: 'https://example.com/r.git' }))).toEqual([])
    const error = await failureOf(handler.fetchRegistry({ name: 'x', managed: {} }, fetchContext()))
    expect(error.code).toBe('source_failed')
  })
})

describe('a server of protocol 0 without side bands', () => {
  it('is reported as too old', async () => {
    await using server = await startBackend((_request, response) => {
      advertisementHead(response).end(
        `${packetLine('# service=git-upload-pack')}${FLUSH}${packetLine(`${commit.oid} HEAD\0shallow`)}${FLUSH}`,
      )
    })
    expect((await failureOf(attempt({ repository: server.url }))).message).toContain('too old (no side-band)')
  })
})

function startingWith(first: readonly (Buffer | string)[], then: Buffer): () => Buffer {
  let begun = false
  return () => {
    if (begun) return then
    begun = true
    return Buffer.concat(first.map((piece) => Buffer.from(piece)))
  }
}
