const HOST = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?'
const DOMAIN = `(?:${HOST}(?:\\.${HOST})*|\\[[a-fA-F0-9:]+\\])(?::\\d+)?`
const PART = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*'
const TAG = '\\w[\\w.-]{0,127}'
const DIGEST = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}'
const REFERENCE = new RegExp(`^(?:${DOMAIN}/)?${PART}(?:/${PART})*(?::(${TAG}))?(?:@(${DIGEST}))?$`)
const IDENTIFIER = /^[a-f0-9]{64}$/
const MAX_LENGTH = 1_024

/** `Always` for what may change under its name. A name that no registry would take is not thought to be that. */
export function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  if (image.length > MAX_LENGTH || IDENTIFIER.test(image)) return 'IfNotPresent'
  const match = REFERENCE.exec(image)
  if (!match) return 'IfNotPresent'
  const [, tag, digest] = match
  return tag === 'latest' || (tag === undefined && digest === undefined) ? 'Always' : 'IfNotPresent'
}
