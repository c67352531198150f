import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { pathRewriter } from '../pod/mount-paths.ts'
import { expand } from './expansion.ts'

describe('expand', () => {
  it.each([
    ['$(A)', 'a'],
    ['x$(A)y$(B)', 'xay$(B)'],
    ['$$(A)', '$(A)'],
    ['$$$(A)', '$a'],
    ['$A $( A)', '$A $( A)'],
    ['$(A', '$(A'],
    ['$(toString)', '$(toString)'],
    ['tail$', 'tail$'],
  ])('%s becomes %s', (text, expected) => {
    expect(expand(text, { A: 'a' })).toBe(expected)
  })

  it('leaves texts without a dollar sign alone', () => {
    fc.assert(fc.property(fc.string(), (text) => void expect(expand(text.replaceAll('$', ''), { A: 'a' })).toBe(text.replaceAll('$', ''))))
  })
})

describe('pathRewriter', () => {
  const mounts = ['/etc/app', '/etc/app/deep/', '/tmp', '/a.b'].map((mountPath) => ({ name: 'v', mountPath }))
  const rewrite = pathRewriter({ name: 'main', volumeMounts: mounts }, '/root')

  it.each([
    ['/etc/app', '/root/etc/app'],
    ['/etc/app/deep/x', '/root/etc/app/deep/x'],
    ['--file=/tmp/x', '--file=/root/tmp/x'],
    ['/tmp:/etc/app:/usr', '/root/tmp:/root/etc/app:/usr'],
    ['file:///tmp/x', 'file:///root/tmp/x'],
    ['/etc/application', '/etc/application'],
    ['/var/tmp/x', '/var/tmp/x'],
    ['http://host/tmp/x', 'http://host/tmp/x'],
    ['/aXb', '/aXb'],
    ['/root/tmp/x', '/root/tmp/x'],
  ])('%s becomes %s', (text, expected) => {
    expect(rewrite(text)).toBe(expected)
  })

  it('leaves paths of the implied /tmp alone, also beside declared mounts', () => {
    const volumeMounts = [
      { name: 'thv-tmp', mountPath: '/tmp' },
      { name: 'notes', mountPath: '/tmp/notes' },
    ]
    const some = pathRewriter({ name: 'mcp', volumeMounts }, '/root')
    expect(['/tmp', '--file=/tmp/x', '/tmp/notes/a'].map(some)).toEqual(['/tmp', '--file=/tmp/x', '/root/tmp/notes/a'])
  })
})
