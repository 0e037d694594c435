class BkbTuner < Formula
  desc "Tune hyper-parameters with a budgeted kernel bandit"
  homepage "https://github.com/bkbtuner/bkb"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "{{.URL "darwin-arm64"}}"
      sha256 "{{.Sum "darwin-arm64"}}"
    end
    on_intel do
      url "{{.URL "darwin-amd64"}}"
      sha256 "{{.Sum "darwin-amd64"}}"
    end
  end

  on_linux do
    on_arm do
      url "{{.URL "linux-arm64"}}"
      sha256 "{{.Sum "linux-arm64"}}"
    end
    on_intel do
      url "{{.URL "linux-amd64"}}"
      sha256 "{{.Sum "linux-amd64"}}"
    end
  end

  def install
    bin.install "tuner"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/tuner.bash" => "tuner"
    zsh_completion.install "completions/_tuner"
    fish_completion.install "completions/tuner.fish"
    doc.install "README.md", "NOTICE", "licenses"
  end

  test do
    system bin/"tuner", "auto", "--demo", "--db", testpath/"demo.db", "--trials", "3"
    assert_match "demo", shell_output("#{bin}/tuner studies --db #{testpath}/demo.db")
  end
end
