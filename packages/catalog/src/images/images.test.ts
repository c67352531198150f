import { describe, expect, it } from 'vitest'
import { documentImages } from './document-images.ts'
import { isListed, listedHashes } from './image-hashes.ts'
import { isSameImage, parseImageReference } from './image-reference.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`
const OTHER = `sha256:${'b'.repeat(64)}`
const IMAGES = [
  'nginx',
  'nginx:latest',
  'docker.io/library/nginx:latest',
  'index.docker.io/library/nginx',
  'nginx:1',
  'localhost:5000/nginx',
  'localhost:5000/nginx:1',
  'ghcr.io/a/b:1',
  `ghcr.io/a/b:1@${DIGEST}`,
  `ghcr.io/a/b:1@${OTHER}`,
  `ghcr.io/a/b@${DIGEST}`,
  `ghcr.io/a/b@${OTHER}`,
  `ghcr.io/a/b:2@${DIGEST}`,
  'npx://left-pad@1.3.0',
]

describe('isListed', () => {
  it('gives for hashes the answer that the references give', () => {
    for (const listed of IMAGES) {
      const hashes = new Set(listedHashes(listed))
      for (const image of IMAGES) {
        const [a, b] = [parseImageReference(listed), parseImageReference(image)]
        expect([listed, image, isListed(image, hashes)]).toEqual([listed, image, a !== undefined && b !== undefined && isSameImage(a, b)])
      }
    }
  })

  it.each(['', 'two words', 'x'.repeat(5_000)])('never lists %j', (image) => {
    expect(listedHashes(image)).toEqual([])
    expect(isListed(image, new Set(listedHashes('nginx')))).toBe(false)
  })
})

describe('documentImages', () => {
  it('finds the images of servers and of groups, in every form of a file', () => {
    const groups = [{ name: 'g', servers: { c: { image: 'c' } } }]
    expect(documentImages(JSON.stringify({ servers: { a: { image: 'a' } }, remote_servers: { r: { url: 'u' } }, groups }))).toEqual([
      'a',
      'c',
    ])
    expect(documentImages(JSON.stringify({ servers: [{ name: 'a', image: 'a' }, { name: 'b' }] }))).toEqual(['a'])
    const packages = [
      { registryType: 'oci', identifier: 'a:1' },
      { registryType: 'npm', identifier: 'no' },
    ]
    expect(documentImages(JSON.stringify({ data: { servers: [{ name: 'x/a', packages }] } }))).toEqual(['a:1'])
    expect(documentImages(JSON.stringify({ servers: [{ server: { name: 'x/a', packages } }] }))).toEqual(['a:1'])
  })

  it.each(['', '{', '[]', 'null', '{"servers":7}', '{"servers":[7,null]}', '{"data":[]}'])('finds none in %s', (text) => {
    expect(documentImages(text)).toEqual([])
  })
})
