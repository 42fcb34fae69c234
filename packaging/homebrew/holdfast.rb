# A template: `cargo xtask package` fills in what stands between @ signs.
class Holdfast < Formula
  desc "Keeps terminal sessions alive, for people and agents"
  homepage "@URL@"
  url "@URL@/@TARBALL@"
  version "@VERSION@"
  sha256 "@SHA256@"
  license any_of: ["Apache-2.0", "MIT"]

  # Sessions run on Linux only.
  depends_on :linux
  depends_on arch: :@BREW_ARCH@

  def install
    bin.install "bin/holdfast"
    man1.install "share/man/man1/holdfast.1"
    bash_completion.install "share/bash-completion/completions/holdfast"
    zsh_completion.install "share/zsh/site-functions/_holdfast"
    fish_completion.install "share/fish/vendor_completions.d/holdfast.fish"
    inreplace Dir["lib/systemd/user/*.service"], "/usr/bin/holdfast", opt_bin/"holdfast"
    (lib/"systemd/user").install Dir["lib/systemd/user/*"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/holdfast --version")
  end
end
