import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { resolveServer } from './resolve-server.ts'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'thv-cli-'))
  mkdirSync(join(folder, '.thv'))
  mkdirSync(join(folder, 'below', 'deeper'), { recursive: true })
  writeFileSync(
    join(folder, '.thv', 'servers.json'),
    JSON.stringify({ everything: 'http://127.0.0.1:8080/mcp', time: 'http://127.0.0.1:8081/sse' }),
  )
})
afterAll(() => rmSync(folder, { recursive: true }))

describe('resolveServer', () => {
  it.each(['http://127.0.0.1:8080/mcp', 'https://mcp.example.com/sse?x=1'])('takes the URL %s as it is', (url) => {
    expect(resolveServer(url, { cwd: '/nowhere' })).toBe(url)
  })

  it('finds a name in .thv here, above, or where it is told', () => {
    expect(resolveServer('everything', { cwd: folder })).toBe('http://127.0.0.1:8080/mcp')
    expect(resolveServer('time', { cwd: join(folder, 'below', 'deeper') })).toBe('http://127.0.0.1:8081/sse')
    expect(resolveServer('time', { cwd: '/nowhere', dataDir: join(folder, '.thv') })).toBe('http://127.0.0.1:8081/sse')
  })

  it.each([
    ['everthing', /there is no server "everthing"\. Did you mean "everything"\? Running: everything, time/],
    ['toString', /there is no server "toString"/],
    ['localhost:8080/mcp', /if it is a URL, write http:\/\/localhost:8080\/mcp/],
    ['ftp://example.com/', /only http and https URLs/],
    ['http://', /is not a URL/],
    ['http://user:secret@example.com/mcp', /must not carry a user name or password/],
  ])('refuses %s', (name, message) => {
    expect(() => resolveServer(name, { cwd: folder })).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringMatching(message) }),
    )
    expect(() => resolveServer(name, { cwd: folder })).not.toThrow(/secret/)
  })

  it('says what to do where no server runs', () => {
    expect(() => resolveServer('time', { cwd: '/nowhere' })).toThrow(/start one with "npm start", or give a URL/)
  })

  it.each([['{'], ['[1]'], ['{"a": 1}']])('says which file is broken: %s', (text) => {
    const broken = mkdtempSync(join(tmpdir(), 'thv-cli-'))
    writeFileSync(join(broken, 'servers.json'), text)
    expect(() => resolveServer('x', { cwd: '/nowhere', dataDir: broken })).toThrow(join(broken, 'servers.json'))
    rmSync(broken, { recursive: true })
  })
})
