import type { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { answerClientError } from './client-error.ts'

it.each([
  ['HPE_INVALID_METHOD', 400, { error: 'Bad Request', code: 'bad_request' }],
  ['HPE_HEADER_OVERFLOW', 431, { error: 'Request Header Fields Too Large', code: 'headers_too_large' }],
])('%s is answered with an error and its code', (code, status, body) => {
  let written = ''
  const socket = { writable: true, destroy: () => {}, end: (text: string) => (written = text) }
  answerClientError(Object.assign(new Error('parse'), { code }), socket as unknown as Socket, false)
  expect(written).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
  expect(JSON.parse(written.split('\r\n\r\n')[1] ?? '')).toEqual(body)
})
