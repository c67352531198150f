import type { Clock } from '@thv/kernel/clock'
import { jwtVerify } from 'jose'
import type { SigningKeys } from '../keys/signing-keys.ts'

/** Claims of an access token of this server. Undefined: not ours, altered or expired. */
export async function ownClaims(
  token: string,
  { issuer, keys, clock }: { issuer: string; keys: SigningKeys; clock: Clock },
): Promise<Readonly<Record<string, unknown>> | undefined> {
  try {
    const { payload } = await jwtVerify(
      token,
      ({ alg = '', kid }) => {
        const [key] = keys.find({ alg, kid })
        if (key === undefined) throw new Error('unknown key')
        return key.key
      },
      { issuer, typ: 'at+jwt', currentDate: new Date(clock.now()) },
    )
    return payload
  } catch {
    return undefined // the answer is the same as for a token that never was
  }
}
