import type { Exchange } from '@thv/http/server/exchange'
import { expect, it } from 'vitest'
import { partyOf } from './party.ts'

const from = (remoteAddress: string | undefined) => ({ remoteAddress }) as Exchange

it('distinguishes principals, and addresses without authentication', () => {
  expect(partyOf('ada', from('10.0.0.1'))).toBe(partyOf('ada', from('10.0.0.2')))
  expect(partyOf('ada', from('10.0.0.1'))).not.toBe(partyOf('eve', from('10.0.0.1')))
  expect(partyOf('anonymous', from('10.0.0.1'))).toBe(partyOf('anonymous', from('10.0.0.1')))
  expect(partyOf('anonymous', from('10.0.0.1'))).not.toBe(partyOf('anonymous', from('10.0.0.2')))
  expect(partyOf('10.0.0.1', from('10.0.0.2'))).not.toBe(partyOf('anonymous', from('10.0.0.1')))
})
