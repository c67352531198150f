import { isThvError } from '@thv/kernel/errors'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseImageReference } from './image-reference.ts'

describe('parseImageReference', () => {
  it.each([
    ['npx://server@1.2.3', { kind: 'npx', name: 'server', version: '1.2.3' }],
    ['npx://@scope/some.server@2026.8.31', { kind: 'npx', name: '@scope/some.server', version: '2026.8.31' }],
    ['npx://a@1.0.0-beta.1+build', { kind: 'npx', name: 'a', version: '1.0.0-beta.1+build' }],
    ['uvx://mcp-server-time@2025.9.25', { kind: 'uvx', name: 'mcp-server-time', version: '2025.9.25' }],
    ['uvx://Some_Package@1!2.0rc1', { kind: 'uvx', name: 'Some_Package', version: '1!2.0rc1' }],
    ['exec:///usr/bin/my server', { kind: 'exec', path: '/usr/bin/my server' }],
  ])('reads %s', (image, expected) => {
    expect(parseImageReference(image)).toEqual(expected)
  })

  it.each([
    ['ghcr.io/example/server:1', 'container images need --runtime kubernetes'],
    ['docker://x', 'container images need --runtime kubernetes'],
    ['npx:server@1.0.0', 'container images need'],
    ['npx://server', 'the package server needs a version'],
    ['npx://@scope/server', 'the package @scope/server needs a version'],
    ['npx://server@latest', 'one exact version'],
    ['npx://server@^1.0.0', 'one exact version'],
    ['npx://server@1.2', 'one exact version'],
    ['npx://server@1.0.0/../../x', 'one exact version'],
    ['npx://../../etc@1.0.0', 'expects the name of a package'],
    ['npx://@scope/../x@1.0.0', 'expects the name of a package'],
    ['npx://a/b/c@1.0.0', 'expects the name of a package'],
    ['npx://--registry=x@1.0.0', 'expects the name of a package'],
    ['npx://git+https://x/y@1.0.0', 'expects the name of a package'],
    ['npx://file:../x@1.0.0', 'expects the name of a package'],
    ['npx://Server@1.0.0', 'expects the name of a package'],
    ['npx://a..b@1.0.0', 'expects the name of a package'],
    [`npx://${'a'.repeat(300)}@1.0.0`, 'expects the name of a package'],
    ['npx://@1.0.0', 'expects the name of a package'],
    ['uvx://--from@1', 'expects the name of a package'],
    ['uvx://time', 'needs a version'],
    ['uvx://time@latest', 'one exact version'],
    ['uvx://time[extra]@1', 'expects the name of a package'],
    ['exec://relative/path', 'absolute path'],
    ['exec:///a/../b', 'absolute path'],
    ['exec:///', 'absolute path'],
    ['exec:////a', 'absolute path'],
    ['exec:///a\nb', 'absolute path'],
    ['exec:///folder/', 'absolute path'],
    ['', 'container images need'],
  ])('refuses %s', (image, message) => {
    const error = attempt(image)
    expect(isThvError(error, 'image_invalid')).toBe(true)
    expect(String(error)).toContain(message)
  })

  it('never returns a name or version that leaves its folder or reads as an option', () => {
    expect(attempt('npx://../x@1')).toBeInstanceOf(Error)
    const hostile = fc.stringMatching(/^[-@./a-z0-9~%\\ ]{0,20}$/)
    fc.assert(
      fc.property(hostile, hostile, (name, version) => {
        const read = attempt(`npx://${name}@${version}`)
        if (read instanceof Error) return
        if (!('name' in read)) throw new Error('not a package')
        expect(read.name).not.toMatch(/^[-.]|\.\.|\\|%|\s|\/.*\//)
        expect(read.version).not.toMatch(/[/\\%\s]|\.\./)
      }),
      { numRuns: 1_000 },
    )
  })
})

function attempt(image: string): ReturnType<typeof parseImageReference> | Error {
  try {
    return parseImageReference(image)
  } catch (error) {
    return error as Error
  }
}
