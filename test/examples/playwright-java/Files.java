// A download by Playwright for Java, got from the service: java -cp 'lib/*' Files.java <url> <key>
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.microsoft.playwright.Browser;
import com.microsoft.playwright.Download;
import com.microsoft.playwright.Page;
import com.microsoft.playwright.Playwright;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;

public class Files {
  static final HttpClient HTTP = HttpClient.newHttpClient();
  static String key;

  public static void main(String[] args) throws Exception {
    key = args[1];
    String sessions = args[0] + "/api/sessions";
    String created = send("POST", sessions).body();
    JsonObject session = JsonParser.parseString(created).getAsJsonObject();
    String address = sessions + "/" + session.get("id").getAsString();
    try (Playwright playwright = Playwright.create()) {
      String cdp = session.get("cdp_url").getAsString();
      Browser browser = playwright.chromium().connectOverCDP(cdp);
      Page page = browser.contexts().get(0).pages().get(0);
      page.setContent("<a download='ann.txt' href='data:,Hello Ann'>Save</a>");
      Download download = page.waitForDownload(() -> page.click("a"));
      // Waits until the browser has all of it.
      if (download.failure() != null) throw new IllegalStateException(download.failure());
      // In place of download.saveAs, which looks for the file on this machine.
      String file = address + "/files/" + encoded(download.suggestedFilename());
      HttpResponse<String> answer = send("GET", file);
      // The service has it a moment after the browser.
      while (answer.statusCode() == 404) {
        Thread.sleep(250);
        answer = send("GET", file);
      }
      System.out.println(download.suggestedFilename() + " " + answer.body());
    } finally {
      send("DELETE", address);
    }
  }

  static HttpResponse<String> send(String method, String url) throws Exception {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url));
    request.header("Authorization", "Bearer " + key);
    request.method(method, BodyPublishers.noBody());
    if (method.equals("POST"))
      request.header("Content-Type", "application/json").POST(BodyPublishers.ofString("{}"));
    return HTTP.send(request.build(), BodyHandlers.ofString());
  }

  static String encoded(String name) {
    return URLEncoder.encode(name, StandardCharsets.UTF_8).replace("+", "%20");
  }
}
