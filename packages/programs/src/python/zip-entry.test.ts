import { describe, expect, it } from 'vitest'
import { zipOf } from '../testing/zip-of.ts'
import { readZipEntry } from './zip-entry.ts'

const LONG = 'x'.repeat(1_000)
const ZIP = zipOf({ 'a/short': 'stored', 'a/long': LONG })

describe('readZipEntry', () => {
  it('reads stored and compressed files', async () => {
    expect((await readZipEntry(ZIP, 'a/short', 100)).toString()).toBe('stored')
    expect((await readZipEntry(ZIP, 'a/long', 1_000)).toString()).toBe(LONG)
  })

  it.each([
    ['a missing file', ZIP, 'a/none', /has no file a\/none/],
    ['a file over the limit', ZIP, 'a/long', /larger than 999 bytes/],
    ['no archive', Buffer.from('<html>'), 'a/long', /the archive is damaged/],
    ['half an archive', ZIP.subarray(40), 'a/short', /the archive is damaged/],
  ])('rejects %s', async (_what, zip, name, message) => {
    await expect(readZipEntry(zip, name, 999)).rejects.toMatchObject({
      code: 'package_install_failed',
      message: expect.stringMatching(message),
    })
  })
})
