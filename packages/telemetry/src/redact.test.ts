import { describe, expect, it } from 'vitest'
import { withoutLinks } from './redact.ts'

describe('a text of somebody else', () => {
  it.each([
    ['open https://example.com/consent?state=abc (now)', 'open [link] (now)'],
    ['at HTTPS://EXAMPLE.COM/abc', 'at [link]'],
    ['_https://example.com/abc', '_[link]'],
    ['{"url":"https:\\/\\/example.com\\/abc"}', '{"url":"[link]'],
    ['app.two+x://abc and http://b/c', '[link] and [link]'],
    ['step 1: ratio 1://', 'step 1: ratio 1://'],
  ])('has no links in a log: %s', (text, logged) => {
    expect(withoutLinks(text)).toBe(logged)
  })
})
