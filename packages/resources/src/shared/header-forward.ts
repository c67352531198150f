import type { Static } from 'typebox'
import { type CelRule, sameIfBoth } from '../schema/cel.ts'
import { list, obj, opt } from '../schema/nodes.ts'
import { type ProblemList, unify } from '../schema/normalize.ts'
import { headerName, NAMES_DIFFER_MESSAGE, plainHeaders } from './http-header.ts'
import { secretKeyRef } from './references.ts'

const MAX_HEADERS = 64

const headersFromSecret = (description: string) =>
  list(
    description,
    obj('A header whose value is in a Secret.', {
      headerName: headerName('Name of the header.'),
      valueSecretRef: secretKeyRef('Secret key with the value.'),
    }),
    {
      merge: ['headerName'],
      maxItems: MAX_HEADERS,
      rules: [
        {
          rule: 'self.all(a, self.exists_one(b, a.headerName.lowerAscii() == b.headerName.lowerAscii()))',
          message: NAMES_DIFFER_MESSAGE,
        },
      ],
    },
  )

/** Headers that a proxy adds to every request to a remote server. For anything but authentication. */
export const headerForward = () =>
  obj(
    'Headers to add to every request to the remote server. Headers that authentication sets are never overwritten.',
    {
      addPlaintextHeaders: opt(plainHeaders('Headers with values that are no secret, by name.', MAX_HEADERS)),
      addHeadersFromSecret: opt(headersFromSecret('Headers with values from Secrets.')),
      addHeadersFromSecrets: opt(headersFromSecret('Another spelling of addHeadersFromSecret.')),
    },
    {
      rules: [
        sameIfBoth('addHeadersFromSecret', 'addHeadersFromSecrets'),
        notInPlainText('addHeadersFromSecret'),
        notInPlainText('addHeadersFromSecrets'),
      ],
    },
  )

function notInPlainText(field: string): CelRule {
  return {
    rule: `!has(self.addPlaintextHeaders) || !has(self.${field}) || !self.${field}.exists(h, self.addPlaintextHeaders.exists(k, k.lowerAscii() == h.headerName.lowerAscii()))`,
    message: `a header must not be in addPlaintextHeaders and in ${field}: keep one of them`,
  }
}

/**
 * For a spec with both `headerForward` and `externalAuthConfigRef`: two sources of one Authorization header would leave open which
 * credential goes out.
 */
export const noAuthorizationBesideExternalAuth: CelRule = {
  rule: `!has(self.externalAuthConfigRef) || !has(self.headerForward) || [${[
    "has(self.headerForward.addPlaintextHeaders) && self.headerForward.addPlaintextHeaders.exists(k, k.lowerAscii() == 'authorization')",
    "has(self.headerForward.addHeadersFromSecret) && self.headerForward.addHeadersFromSecret.exists(h, h.headerName.lowerAscii() == 'authorization')",
    "has(self.headerForward.addHeadersFromSecrets) && self.headerForward.addHeadersFromSecrets.exists(h, h.headerName.lowerAscii() == 'authorization')",
  ].join(', ')}].all(found, !found)`,
  message:
    'headerForward must not set Authorization when externalAuthConfigRef is set: leave authentication to the MCPExternalAuthConfig and remove the header',
  reason: 'FieldValueForbidden',
  fieldPath: '.headerForward',
}

export type HeaderForward = Static<ReturnType<typeof headerForward>>
export type HeaderFromSecret = NonNullable<HeaderForward['addHeadersFromSecret']>[number]

export interface CanonicalHeaderForward {
  addPlaintextHeaders: Record<string, string>
  /** Sorted by name. */
  addHeadersFromSecret: HeaderFromSecret[]
}

/** Absent and empty mean the same, so both become empty. */
export function normaliseHeaderForward(problems: ProblemList, field: string, value: HeaderForward | undefined): CanonicalHeaderForward {
  const fromSecret = unify(problems, {
    [`${field}.addHeadersFromSecret`]: sorted(value?.addHeadersFromSecret),
    [`${field}.addHeadersFromSecrets`]: sorted(value?.addHeadersFromSecrets),
  })
  return { addPlaintextHeaders: value?.addPlaintextHeaders ?? {}, addHeadersFromSecret: fromSecret ?? [] }
}

/** The server treats the list as a map by name, so its order says nothing. */
function sorted(headers: readonly HeaderFromSecret[] | undefined): HeaderFromSecret[] | undefined {
  return headers && [...headers].sort((a, b) => (a.headerName < b.headerName ? -1 : 1))
}
