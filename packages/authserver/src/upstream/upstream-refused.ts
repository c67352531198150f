/** The provider answered `invalid_grant` or the like. The text is the provider's error code, without any token. */
export class UpstreamRefused extends Error {
  override readonly name = 'UpstreamRefused'
}
